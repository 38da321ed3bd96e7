/* SPDX-License-Identifier: MIT */
/* Names of rows: labels of stacks that would look alike get the frames in which they differ. */
#ifndef TN_REPORT_LABEL_APART_H
#define TN_REPORT_LABEL_APART_H

#include "analysis/group_key.h"
#include "report/result.h"

/* The stack of a row, as its label was made. */
typedef struct tn_stack_label tn_label_of(const void *context, const struct tarn_group *group);

/* Lengthens the labels of `count` rows by stack, structs of `row_size` bytes that begin with struct
 * tarn_group, until those of different stacks differ, as long as a visible frame does. False when
 * host memory is missing. */
bool tn_labels_tell_apart(struct tn_result *result, tn_label_of *label_of, const void *context,
                          void *rows, size_t count, size_t row_size) TN_MUST_CHECK;

/* The same for rows of one analysis, whose numbers are its keys; nothing for other groupings. */
bool tn_labels_distinguish(struct tn_result *result, const struct tn_group_keys *keys, void *rows,
                           size_t count, size_t row_size) TN_MUST_CHECK;

/* Copies the first `count` rows into the result and names their groups; NULL without host memory.
 */
void *tn_rows_name(struct tn_result *result, const struct tn_row_set *set, size_t count,
                   const struct tn_group_keys *keys) TN_MUST_CHECK;

#endif
