/* SPDX-License-Identifier: MIT */
/*
 * Verifies the allocator against recorded decisions: a log of calls to PyTorch's allocator on a
 * GPU, with the pointer, events, counters and snapshots that each call produced. The calls are
 * repeated here on a simulated device that returns the recorded addresses; every result must be
 * equal.
 */
#ifndef TARN_VERIFY_H
#define TARN_VERIFY_H

#include "device.h"
#include "snapshot.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    TARN_VERIFY_TEXT_MAX = 8192
};

/* Zero bytes mean the defaults. */
struct tarn_verify_options {
    uint32_t struct_size; /* sizeof(struct tarn_verify_options) */

    /* A GPU that backs the recorded addresses with memory (tarn_sim_options.memory): every
     * allocation, page and mapping is also made there; each block is written when it is allocated
     * and must hold the same bytes when it is freed. NULL = no memory. Borrowed. */
    struct tarn_device *memory;
};

struct tarn_verify_result {
    uint32_t struct_size; /* in: sizeof(struct tarn_verify_result) */
    uint64_t calls;
    uint64_t differing;               /* calls with any difference */
    char first[TARN_VERIFY_TEXT_MAX]; /* the first one: call, expected, got; "" when none */
    uint64_t blocks_read;             /* blocks whose contents were checked when they were freed */
};

/* Runs the log at `path` ("-" is standard input; plain, gzip or zstd). Returns TARN_OK whether or
 * not there are differences; fails when the log cannot be read or is inconsistent, with the line in
 * the error's text, or when memory cannot be written or read. `options` may be NULL. Any thread. */
TARN_API enum tarn_status tarn_verify_log(const char *path,
                                          const struct tarn_verify_options *options,
                                          struct tarn_verify_result *result_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* Whether the file at `path` starts like a decision log. False for pipes and standard input, which
 * cannot be read twice. Any thread. */
TARN_API bool tarn_verify_is_log(const char *path);

/* Converts the log at `path` to the snapshot that the recorded process would have dumped at its
 * end, with the whole trace and the pools but without stacks and timestamps; settings are those at
 * the end. The calls are replayed to do so: TARN_ERR_FORMAT when a result differs; other errors as
 * tarn_verify_log. Caller owns *snapshot_out, destroy with tarn_snapshot_destroy. Any thread.
 */
TARN_API enum tarn_status tarn_verify_snapshot(const char *path,
                                               struct tarn_snapshot **snapshot_out,
                                               struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
