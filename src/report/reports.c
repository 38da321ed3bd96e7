/* SPDX-License-Identifier: MIT */
/*
 * Implements the functions of tarn/report.h for the reports on devices:
 * tarn_churn_compute, tarn_frag_compute, tarn_leaks_compute, tarn_live_compute, tarn_oom_compute,
 * tarn_peak_compute, tarn_private_pools_compute, tarn_steps_compute, tarn_top_compute.
 */
#include "report/reports.h"

#define TN_REPORT(name, scope)                                                                     \
    enum tarn_status tarn_##name##_compute(                                                        \
        const struct tarn_snapshot *snapshot, const struct tarn_report_options *options,           \
        struct tarn_##name##_result **results_out, size_t *count_out, struct tarn_error *error)    \
    {                                                                                              \
        return tn_report_run(snapshot, options, scope, sizeof **results_out, tn_##name##_compute,  \
                             results_out, count_out, error);                                       \
    }

TN_REPORT(churn, TN_REPORT_TRACE)
TN_REPORT(frag, TN_REPORT_STATE)
TN_REPORT(leaks, TN_REPORT_TRACE)
TN_REPORT(live, TN_REPORT_STATE)
TN_REPORT(oom, TN_REPORT_TRACE)
TN_REPORT(peak, TN_REPORT_TRACE)
TN_REPORT(private_pools, TN_REPORT_STATE)
TN_REPORT(steps, TN_REPORT_TRACE)
TN_REPORT(top, TN_REPORT_STATE)
