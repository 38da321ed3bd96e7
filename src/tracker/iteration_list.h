/* SPDX-License-Identifier: MIT */
/*
 * Iterations: what each began with, its peak and its end, by category over all devices. The newest
 * TN_ITERATIONS_KEPT stay. The last one is in progress; it becomes a past one only once an operator
 * has ended in it.
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
    bool used; /* an operator has ended in it */
    int64_t begin[TARN_TRACK_CATEGORIES_MAX];
    int64_t peak[TARN_TRACK_CATEGORIES_MAX];
    int64_t end[TARN_TRACK_CATEGORIES_MAX]; /* of past ones */
    int64_t begin_total;
    int64_t peak_total;
    int64_t end_total;
};

struct tn_iteration_list {
    struct tn_vec past; /* of struct tn_iteration */
    struct tn_iteration current;
};

void tn_iteration_list_init(struct tn_iteration_list *list);
void tn_iteration_list_fini(struct tn_iteration_list *list);

/* Makes room for the one in progress among the past ones. */
bool tn_iteration_list_reserve(struct tn_iteration_list *list) TN_MUST_CHECK;

/* The one in progress ends with `now`, and another begins; room was made. */
void tn_iteration_list_begin(struct tn_iteration_list *list, const struct tn_breakdown *now,
                             int64_t total);

/* An operator has ended. */
void tn_iteration_list_op_done(struct tn_iteration_list *list, const struct tn_breakdown *now,
                               int64_t total);

/* How many, the one in progress among them if it was used. */
size_t tn_iteration_list_count(const struct tn_iteration_list *list);

/* A copy of number `at` of those, ended with `now` if it is in progress. */
struct tn_iteration tn_iteration_list_at(const struct tn_iteration_list *list, size_t at,
                                         const struct tn_breakdown *now, int64_t total);

#endif
