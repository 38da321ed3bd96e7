/* SPDX-License-Identifier: MIT */
/*
 * A snapshot written when memory runs out: by itself, a file a process, with the history that led
 * there. It needs no memory of the device; of the host it needs what a snapshot needs, about 300
 * bytes an event while it is written.
 */
#ifndef TARN_OOM_DUMP_H
#define TARN_OOM_DUMP_H

#include "capture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_oom_dump;

/* From now on an allocation that fails for want of memory writes a snapshot of the allocator and
 * its history (NULL where there is none) to `path`, on the thread that failed and before it
 * returns. The file appears whole or not at all and replaces an earlier one, so that the last
 * failure is kept.
 *
 * In the path %p is the process's number, %r its rank (the first of the variables RANK,
 * OMPI_COMM_WORLD_RANK, PMI_RANK and SLURM_PROCID that is set, else 0) and %% a per cent sign. A
 * path of NULL is that of the variable TARN_DUMP_ON_OOM; where it is not set there will be no dumps
 * and *dump_out is NULL. A name in .json gives JSON, any other a pickle.
 *
 * Caller owns *dump_out; give it to tarn_oom_dump_destroy after the allocator was destroyed.
 * TARN_ERR_INVALID_ARGUMENT for a path that is empty, longer than 4,000 bytes or has another % in
 * it; TARN_ERR_LIMIT when the allocator has TARN_OBSERVERS_MAX observers; TARN_ERR_NOT_SUPPORTED
 * for backend:cudaMallocAsync. */
TARN_API enum tarn_status tarn_dump_on_oom(struct tarn_allocator *allocator,
                                           struct tarn_history *history, const char *path,
                                           struct tarn_oom_dump **dump_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

enum {
    TARN_OOM_PATH_BYTES = 4001 /* of a path with its NUL */
};

/* Where tarn_dump_on_oom(..., path, ...) would write, for programs that write by themselves: the
 * path with its % replaced, or "" when there is none. `text` has room for TARN_OOM_PATH_BYTES.
 * TARN_ERR_INVALID_ARGUMENT as there. */
TARN_API enum tarn_status tarn_oom_dump_expand(const char *path, char *text,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* NULL is allowed. */
TARN_API void tarn_oom_dump_destroy(struct tarn_oom_dump *dump);

/* How many failures there were, and how the last dump went: its status, and its text in `error`.
 * TARN_OK when there was none. Any thread. */
TARN_API uint64_t tarn_oom_dump_count(struct tarn_oom_dump *dump);
TARN_API enum tarn_status tarn_oom_dump_status(struct tarn_oom_dump *dump,
                                               struct tarn_error *error);

/* The path with its % replaced. Borrowed until `dump` goes. */
TARN_API const char *tarn_oom_dump_path(const struct tarn_oom_dump *dump);

#ifdef __cplusplus
}
#endif

#endif
