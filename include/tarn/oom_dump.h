/* SPDX-License-Identifier: MIT */
/*
 * Writes a snapshot automatically when memory runs out: one file per process, with the history that
 * led to the failure. It needs no device memory, and about 300 bytes of host memory per event while
 * it writes.
 */
#ifndef TARN_OOM_DUMP_H
#define TARN_OOM_DUMP_H

#include "capture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_oom_dump;

/* From now on an allocation that fails for lack of memory writes a snapshot of the allocator and
 * its history (NULL = none) to `path`, on the failing thread and before the call returns. The file
 * appears whole or not at all and replaces an earlier one: the last failure is kept.
 *
 * In the path, %p is the process id, %r its rank (the first of the variables RANK,
 * OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID that is set, else 0) and %% a per cent sign. If
 * the path is NULL, the variable TARN_DUMP_ON_OOM supplies it; if that is not set, there are no
 * dumps and *dump_out is NULL. A name that ends in .json gives JSON, any other a pickle.
 *
 * Caller owns *dump_out, which is NULL after a failure; destroy with tarn_oom_dump_destroy after
 * the allocator.
 * TARN_ERR_INVALID_ARGUMENT for a path that is empty, longer than 4,000 bytes or contains any other
 * %; TARN_ERR_LIMIT when the allocator has TARN_OBSERVERS_MAX observers; TARN_ERR_NOT_SUPPORTED for
 * backend:cudaMallocAsync. */
TARN_API enum tarn_status tarn_oom_dump_create(struct tarn_allocator *allocator,
                                               struct tarn_history *history, const char *path,
                                               struct tarn_oom_dump **dump_out,
                                               struct tarn_error *error) TARN_MUST_CHECK;

enum {
    TARN_OOM_PATH_BYTES = 4001 /* of a path with its NUL */
};

/* Where tarn_oom_dump_create(..., path, ...) would write, for programs that write the file
 * themselves: the expanded path, or "" if there is none. `text` has space for TARN_OOM_PATH_BYTES.
 * TARN_ERR_INVALID_ARGUMENT as there. */
TARN_API enum tarn_status tarn_oom_dump_expand(const char *path, char *text,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_oom_dump_destroy(struct tarn_oom_dump *dump);

/* The number of failures so far, and the status of the last dump with its text in `error`; TARN_OK
 * when there was none. Any thread. */
TARN_API uint64_t tarn_oom_dump_count(struct tarn_oom_dump *dump);
TARN_API enum tarn_status tarn_oom_dump_get_status(struct tarn_oom_dump *dump,
                                                   struct tarn_error *error);

/* The expanded path. Borrowed until `dump` is destroyed. */
TARN_API const char *tarn_oom_dump_get_path(const struct tarn_oom_dump *dump);

#ifdef __cplusplus
}
#endif

#endif
