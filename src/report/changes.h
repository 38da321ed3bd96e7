/* SPDX-License-Identifier: MIT */
/*
 * Two compositions of memory side by side, as the rows of a table: what each group held before and
 * holds after. The rows add up to the total.
 */
#ifndef TN_REPORT_CHANGES_H
#define TN_REPORT_CHANGES_H

#include "report/name_table.h"
#include "report/result.h"

enum tn_change_side {
    TN_CHANGE_BEFORE,
    TN_CHANGE_AFTER
};

/* Rows of struct tarn_change, by number of name. Destroyed with tn_row_set_fini. */
void tn_changes_init(struct tn_row_set *set);

/* Adds what a name holds on one side; false without host memory. */
bool tn_changes_add(struct tn_row_set *set, enum tn_change_side side, uint32_t name, uint64_t bytes,
                    uint64_t blocks) TN_MUST_CHECK;

/* Adds what tn_holders_collect found, under names made from the keys. */
bool tn_changes_add_holders(struct tn_row_set *set, struct tn_name_table *names,
                            enum tn_change_side side, const struct tn_group_keys *keys,
                            const struct tn_row_set *holders) TN_MUST_CHECK;

/* Sorts the rows, most change first, and copies at most `limit` into the result. Nothing is added
 * afterwards. False without host memory. */
bool tn_changes_make(struct tn_result *result, struct tn_row_set *set,
                     const struct tn_name_table *names, enum tarn_grouping by, uint64_t limit,
                     struct tarn_changes *changes_out) TN_MUST_CHECK;

#endif
