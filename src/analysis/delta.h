/* SPDX-License-Identifier: MIT */
/*
 * Two compositions of memory side by side: what each group held before and holds after. The rows
 * add up to the total.
 */
#ifndef TN_ANALYSIS_DELTA_H
#define TN_ANALYSIS_DELTA_H

#include "analysis/group.h"
#include "analysis/name_table.h"

enum tn_delta_side {
    TN_DELTA_BEFORE,
    TN_DELTA_AFTER
};

struct tn_delta_row {
    uint32_t name;     /* of the table of names */
    uint64_t bytes[2]; /* by side */
    uint64_t blocks[2];
};

struct tn_delta {
    const struct tn_name_table *names;
    struct tn_vec rows;    /* struct tn_delta_row; most change first once sorted */
    struct tn_vec numbers; /* uint32_t a name: number of its row + 1, 0 = none */
    struct tn_delta_row total;
};

/* Borrows the names, which may grow. */
void tn_delta_init(struct tn_delta *delta, const struct tn_name_table *names);
void tn_delta_fini(struct tn_delta *delta);

/* Adds what a name holds on one side; false when host memory is missing. */
bool tn_delta_add(struct tn_delta *delta, enum tn_delta_side side, uint32_t name, uint64_t bytes,
                  uint64_t blocks) TN_MUST_CHECK;

/* Adds all groups of one side, with names made from their keys. `names` are those of the delta. */
bool tn_delta_add_groups(struct tn_delta *delta, struct tn_name_table *names,
                         enum tn_delta_side side, const struct tn_group_keys *keys,
                         const struct tn_groups *groups) TN_MUST_CHECK;

/* Most change first. Nothing is added after it. */
void tn_delta_sort(struct tn_delta *delta);

#endif
