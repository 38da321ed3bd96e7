/* SPDX-License-Identifier: MIT */
/* What a device has, for a selection that no block of it matches. */
#ifndef TN_ANALYSIS_NO_MATCH_H
#define TN_ANALYSIS_NO_MATCH_H

#include "analysis/analysis.h"

/* Whether blocks are picked and there are none. */
bool tn_no_match(const struct tn_analysis *analysis);

/* TARN_ERR_NOT_FOUND, with a text that says it and names what could be selected instead. */
enum tarn_status tn_no_match_fail(const struct tn_analysis *analysis, struct tarn_error *error);

#endif
