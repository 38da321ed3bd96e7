/* SPDX-License-Identifier: MIT */
/*
 * The limits of readers. Their memory is proportional to the input, so that no small file can take
 * much: 16 bytes per byte of a plain file, 512 per byte of a compressed one, at least 256 MiB, at
 * most half of the machine's memory. PyTorch's recordings take 1 and 20. For an input of unknown
 * size, the bytes read so far count.
 *
 * Written out without sharing, a snapshot may have 1024 bytes per byte of a plain file and 8192 per
 * byte of a compressed one, at least 256 MiB. PyTorch's recordings have 23 and 397 with Python
 * frames, and several times as much with C++ frames.
 */
#ifndef TN_SNAPSHOT_READ_LIMITS_H
#define TN_SNAPSHOT_READ_LIMITS_H

#include "base/budget.h"
#include "base/input.h"
#include "snapshot/model.h"
#include "tarn/snapshot.h"

/* The caller's limits (may be NULL) with the defaults filled in, except for `max_memory`.
 * TARN_ERR_INVALID_ARGUMENT. */
enum tarn_status tn_read_limits_complete(const struct tarn_read_limits *wanted,
                                         struct tarn_read_limits *limits,
                                         struct tarn_error *error) TN_MUST_CHECK;

/* A file, or memory if `path` is NULL. */
struct tn_read_source {
    const char *path;
    const void *bytes;
    size_t size;
};

/* Completes the limits and opens the source under them. On failure there is nothing to close.
 * Errors of tn_read_limits_complete and tn_input_open. */
enum tarn_status tn_read_limits_open(const struct tarn_read_limits *wanted,
                                     const struct tn_read_source *source,
                                     struct tarn_read_limits *limits_out, struct tn_input *input,
                                     struct tarn_error *error) TN_MUST_CHECK;

/* The initial memory limit. */
uint64_t tn_read_limits_memory(const struct tarn_read_limits *limits, const struct tn_input *input);

/* Bounds the model written out. If the size of the input is unknown, this bound and the budget grow
 * with the input, which the budget borrows until tn_read_limits_finish. Does nothing if the caller
 * set a memory limit. */
void tn_read_limits_follow(const struct tarn_read_limits *limits, const struct tn_input *input,
                           struct tn_model *model);
void tn_read_limits_finish(struct tn_budget *budget);

#endif
