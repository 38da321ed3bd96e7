/* SPDX-License-Identifier: MIT */
/* The reports on devices that have a trace, as tn_report_run computes them: each fills the struct
 * of tarn/report.h that has its name. */
#ifndef TN_REPORT_REPORTS_H
#define TN_REPORT_REPORTS_H

#include "report/result.h"

tn_report_device tn_churn_compute;
tn_report_device tn_frag_compute;
tn_report_device tn_leaks_compute;
tn_report_device tn_live_compute;
tn_report_device tn_oom_compute;
tn_report_device tn_peak_compute;
tn_report_device tn_top_compute;

#endif
