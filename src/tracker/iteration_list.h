/* SPDX-License-Identifier: MIT */
/*
 * Iterations: bytes at the start, the peak and the end, by category over all devices. Keeps the
 * newest TN_ITERATIONS_KEPT. The last one is in progress; it is kept only if an operator has
 * finished in it.
 *
 * Guarded by its owner.
 */
#ifndef TN_TRACKER_ITERATION_LIST_H
#define TN_TRACKER_ITERATION_LIST_H

#include "base/vec.h"
#include "tracker/breakdown.h"

enum {
    TN_ITERATIONS_KEPT = 256
};

struct tn_iteration {
    uint64_t number;
    bool used; /* an operator has finished in it */
    int64_t begin[TARN_TRACK_CATEGORIES_MAX];
    int64_t peak[TARN_TRACK_CATEGORIES_MAX];
    int64_t end[TARN_TRACK_CATEGORIES_MAX]; /* for ended ones */
    int64_t begin_total;
    int64_t peak_total;
    int64_t end_total;
};

struct tn_iteration_list {
    struct tn_vec ended; /* of struct tn_iteration */
    struct tn_iteration current;
};

void tn_iteration_list_init(struct tn_iteration_list *list);
void tn_iteration_list_fini(struct tn_iteration_list *list);

/* Reserves space for one more ended iteration. */
bool tn_iteration_list_reserve(struct tn_iteration_list *list) TN_MUST_CHECK;

/* Ends the one in progress with `now` and starts the next; space must be reserved. */
void tn_iteration_list_begin(struct tn_iteration_list *list, const struct tn_breakdown *now,
                             int64_t total);

/* An operator has finished. */
void tn_iteration_list_op_done(struct tn_iteration_list *list, const struct tn_breakdown *now,
                               int64_t total);

/* Number of iterations, including the one in progress if it was used. */
size_t tn_iteration_list_count(const struct tn_iteration_list *list);

/* Copies iteration `at`, with `now` as its end if it is in progress. */
struct tn_iteration tn_iteration_list_at(const struct tn_iteration_list *list, size_t at,
                                         const struct tn_breakdown *now, int64_t total);

#endif
