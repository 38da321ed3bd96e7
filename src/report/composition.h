/* SPDX-License-Identifier: MIT */
/* What memory is made of at one moment: who holds it, and how much more is reserved. */
#ifndef TN_REPORT_COMPOSITION_H
#define TN_REPORT_COMPOSITION_H

#include "analysis/group.h"
#include "report/result.h"

/* Right after an event. False when host memory is missing. */
bool tn_composition_make(const struct tn_report *report, const struct tn_analysis *analysis,
                         const struct tn_time_point *at,
                         struct tarn_composition *composition_out) TN_MUST_CHECK;

/* The table alone, of groups that were collected. */
bool tn_holders_make(const struct tn_report *report, const struct tn_analysis *analysis,
                     const struct tn_groups *groups,
                     struct tarn_holders *holders_out) TN_MUST_CHECK;

#endif
