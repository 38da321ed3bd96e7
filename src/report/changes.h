/* SPDX-License-Identifier: MIT */
/* What changed between two compositions, as the rows of a table. */
#ifndef TN_REPORT_CHANGES_H
#define TN_REPORT_CHANGES_H

#include "analysis/delta.h"
#include "report/result.h"

/* At most `limit` rows of a sorted delta. False when host memory is missing. */
bool tn_changes_make(struct tn_result *result, const struct tn_delta *delta, enum tarn_grouping by,
                     uint64_t limit, struct tarn_changes *changes_out) TN_MUST_CHECK;

#endif
