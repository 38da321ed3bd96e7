/* SPDX-License-Identifier: MIT */
/* What memory is made of at one time point: who holds it, and how much more is reserved. */
#ifndef TN_REPORT_COMPOSITION_H
#define TN_REPORT_COMPOSITION_H

#include "report/result.h"

/* What each group holds right after an event: rows of struct tarn_holder, most bytes first. False
 * without host memory; then there is nothing to release. */
bool tn_holders_collect(struct tn_row_set *set, const struct tn_analysis *analysis,
                        uint64_t event) TN_MUST_CHECK;

/* The table of such rows. False without host memory. */
bool tn_holders_make(const struct tn_report *report, const struct tn_analysis *analysis,
                     const struct tn_row_set *set, struct tarn_holders *holders_out) TN_MUST_CHECK;

/* Bytes held right after an event by blocks that the trace allocated with an empty stack. */
uint64_t tn_bytes_without_frames(const struct tn_analysis *analysis, uint64_t event);

/* All of it right after an event. False without host memory. */
bool tn_composition_make(const struct tn_report *report, const struct tn_analysis *analysis,
                         const struct tn_time_point *at,
                         struct tarn_composition *composition_out) TN_MUST_CHECK;

#endif
