/* SPDX-License-Identifier: MIT */
/*
 * Memory snapshots from profiles: the Chrome trace that torch.profiler exports after a run with
 * profile_memory=True. They are built like those of PyTorch's own _profile_to_snapshot: one segment
 * per device that spans all addresses, the allocations and frees as its trace, and the CPU as an
 * additional device after the last GPU.
 *
 * The stack of an allocation consists of the Python functions (with_stack=True) and operators that
 * were running on its thread.
 */
#ifndef TARN_PROFILE_H
#define TARN_PROFILE_H

#include "snapshot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What was read and what was missing. */
struct tarn_profile_info {
    uint32_t struct_size;  /* sizeof(struct tarn_profile_info), set by the caller */
    uint64_t events;       /* memory events */
    uint64_t slices;       /* function and operator slices */
    uint64_t unknown;      /* memory events without address, bytes or device: skipped */
    uint64_t before_bytes; /* allocated on GPUs before the first event, according to its totals: not
                              in the snapshot, except blocks freed later */
};

/* Reads a profile, plain, gzip or zstd; "-" is standard input. Nothing in it is called. `limits`
 * and `info` may be NULL. Caller owns *snapshot_out, destroy with tarn_snapshot_destroy; NULL after
 * a failure. TARN_ERR_IO; TARN_ERR_FORMAT, with the position, if it is not a Chrome trace;
 * TARN_ERR_NOT_SUPPORTED when it has no memory events; TARN_ERR_TRUNCATED; TARN_ERR_LIMIT;
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_profile_load(const char *path, const struct tarn_read_limits *limits,
                                            struct tarn_snapshot **snapshot_out,
                                            struct tarn_profile_info *info,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* The same from memory, which is not used after the call. */
TARN_API enum tarn_status tarn_profile_load_memory(const void *bytes, size_t size,
                                                   const struct tarn_read_limits *limits,
                                                   struct tarn_snapshot **snapshot_out,
                                                   struct tarn_profile_info *info,
                                                   struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
