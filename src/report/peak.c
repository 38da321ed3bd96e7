/* SPDX-License-Identifier: MIT */
/*
 * Memory by owner at the peaks of allocated and of reserved bytes, which are often at different
 * times (the first of equal ones counts), or at any other instant.
 */
#include "analysis/allocated_peak.h"
#include "report/composition.h"
#include "report/reports.h"

enum tarn_status tn_peak_compute(const struct tn_report *report, const struct tn_analysis *analysis,
                                 void *result_out, struct tarn_error *error)
{
    struct tarn_peak_result *peak = result_out;

    struct tn_allocated_peak allocated;

    (void)error;
    if (!tn_allocated_peak_find(&allocated, &analysis->whole)) {
        return TARN_ERR_HOST_MEMORY;
    }
    peak->allocated_peak = allocated.bytes;
    peak->whole_reserved_peak = analysis->whole.reserved_peak.reserved;
    peak->whole_peak = tn_result_time_point(&analysis->whole.requested_peak);
    peak->requested_peak.at = tn_result_time_point(&analysis->timeline->requested_peak);
    return (report->for_summary ||
            tn_composition_make(report, analysis, &analysis->timeline->requested_peak,
                                &peak->requested_peak)) &&
                   tn_composition_make(report, analysis, &analysis->timeline->reserved_peak,
                                       &peak->reserved_peak)
               ? TARN_OK
               : TARN_ERR_HOST_MEMORY;
}

enum tarn_status tn_live_compute(const struct tn_report *report, const struct tn_analysis *analysis,
                                 void *result_out, struct tarn_error *error)
{
    struct tarn_live_result *live = result_out;
    struct tn_time_point at;
    const enum tarn_status status =
        tn_analysis_time_point(analysis, &analysis->query->selection.at, TARN_AT_END, &at, error);

    if (status) {
        return status;
    }
    return tn_composition_make(report, analysis, &at, &live->composition) ? TARN_OK
                                                                          : TARN_ERR_HOST_MEMORY;
}
