/* SPDX-License-Identifier: MIT */
/* The reports that tn_report_run computes for each device with a trace. tn_NAME_compute fills
 * struct tarn_NAME_result. */
#ifndef TN_REPORT_REPORTS_H
#define TN_REPORT_REPORTS_H

#include "report/result.h"

tn_report_device tn_churn_compute;
tn_report_device tn_frag_compute;
tn_report_device tn_leaks_compute;
tn_report_device tn_live_compute;
tn_report_device tn_oom_compute;
tn_report_device tn_peak_compute;
tn_report_device tn_private_pools_compute;
tn_report_device tn_steps_compute;
tn_report_device tn_top_compute;

#endif
