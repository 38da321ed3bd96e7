/* SPDX-License-Identifier: MIT */
/*
 * The limits of readers of snapshots, filled in. What a reader may hold is in proportion to its
 * input, so that a small file cannot take much, whatever it makes of itself: 16 bytes for each byte
 * of a plain file, 512 for each byte of a packed one, at least 256 MiB, at most half of the
 * machine's memory. Recordings of PyTorch take 1 and 20. Of an input of unknown size, the bytes
 * that have come so far count.
 *
 * Written out, with nothing shared, a snapshot may have 1024 bytes for each byte of a plain file
 * and 8192 for each of a packed one, at least 256 MiB. Recordings of PyTorch come to 23 and 397
 * with Python's frames; with those of C++ to several times as much.
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
struct tn_read_place {
    const char *path;
    const void *bytes;
    size_t size;
};

/* Completes the limits and opens the place under them. On failure there is nothing to close. Errors
 * of tn_read_limits_complete and tn_input_open. */
enum tarn_status tn_read_limits_open(const struct tarn_read_limits *wanted,
                                     const struct tn_read_place *place,
                                     struct tarn_read_limits *limits_out, struct tn_input *input,
                                     struct tarn_error *error) TN_MUST_CHECK;

/* What the limit on memory is at first. */
uint64_t tn_read_limits_memory(const struct tarn_read_limits *limits, const struct tn_input *input);

/* Bounds what the model may be written out. Lets this and the budget grow with the input, which the
 * budget borrows until tn_read_limits_settle, when the size is unknown. With a fixed limit of the
 * caller's neither is touched. */
void tn_read_limits_follow(const struct tarn_read_limits *limits, const struct tn_input *input,
                           struct tn_model *model);
void tn_read_limits_settle(struct tn_budget *budget);

#endif
