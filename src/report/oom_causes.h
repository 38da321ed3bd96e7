/* SPDX-License-Identifier: MIT */
/*
 * Failed requests by cause: those with the same verdict, refused by the same side, failed for one
 * reason, whoever made them.
 */
#ifndef TN_REPORT_OOM_CAUSES_H
#define TN_REPORT_OOM_CAUSES_H

#include "report/result.h"

/* Fills `causes` of the result from its failures, in the order of their first ones. False without
 * host memory. */
bool tn_oom_causes_make(struct tn_result *owner, struct tarn_oom_result *result) TN_MUST_CHECK;

/* Fills `remedies` by asking the options' find_remedies. False without host memory. */
bool tn_oom_remedies_make(struct tn_result *owner, const struct tarn_report_options *options,
                          struct tarn_oom_result *result) TN_MUST_CHECK;

#endif
