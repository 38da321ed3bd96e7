/* SPDX-License-Identifier: MIT */
/*
 * What memory was made of at its peaks, most bytes in use and most bytes reserved, which are often
 * different moments (the first of equal ones counts), or at any other instant.
 */
#include "tarn/report.h"

#include "analysis/composition.h"
#include "report/report_out.h"

#include <inttypes.h>

static void head_put(const struct tn_report_out *report, const struct tn_analysis *analysis)
{
    if (report->json) {
        tn_json_open_object(report->json, NULL);
        tn_json_signed(report->json, "device", analysis->timeline->device);
        tn_json_number(report->json, "entries", analysis->timeline->trace->count);
        tn_analysis_put_selection_json(report->json, analysis);
    } else {
        tn_text_printf(report->out, "device %" PRId64 "\n", analysis->timeline->device);
        tn_analysis_put_selection(report->out, analysis);
    }
}

/* One moment; false when host memory is missing. */
static bool moment_put(const struct tn_report_out *report, const struct tn_analysis *analysis,
                       const struct tn_time_point *moment, const char *what, const char *key)
{
    struct tn_composition composition;
    bool good;

    if (!tn_composition_init(&composition, analysis, moment)) {
        return false;
    }
    if (report->json) {
        good = tn_composition_put_json(report->json, analysis, &composition, key, report->limit);
    } else {
        tn_text_putc(report->out, '\n');
        good = tn_composition_put(report->out, analysis, &composition, what, report->limit);
    }
    tn_composition_fini(&composition);
    return good;
}

/* The instant that the selection says, else `usual`. */
static enum tarn_status instant_put(const struct tn_report_out *report,
                                    const struct tn_analysis *analysis,
                                    enum tarn_instant_kind usual, struct tarn_error *error)
{
    struct tn_time_point moment;
    const enum tarn_status status =
        tn_analysis_time_point(analysis, &analysis->query->selection.at, usual, &moment, error);

    if (status) {
        return status;
    }
    head_put(report, analysis);
    if (!moment_put(report, analysis, &moment, "then", "instant")) {
        return TARN_ERR_HOST_MEMORY;
    }
    if (report->json) {
        tn_json_close(report->json);
    }
    return TARN_OK;
}

static enum tarn_status peaks_put(const struct tn_report_out *report,
                                  const struct tn_analysis *analysis, struct tarn_error *error)
{
    const struct tn_timeline *timeline = analysis->timeline;

    if (analysis->query->selection.at.kind != TARN_AT_UNSAID) {
        return instant_put(report, analysis, TARN_AT_PEAK, error);
    }
    head_put(report, analysis);
    if (!moment_put(report, analysis, &timeline->requested_peak, "most in use", "requested_peak") ||
        !moment_put(report, analysis, &timeline->reserved_peak, "most reserved", "reserved_peak")) {
        return TARN_ERR_HOST_MEMORY;
    }
    if (report->json) {
        tn_json_close(report->json);
    }
    return TARN_OK;
}

static enum tarn_status live_put(const struct tn_report_out *report,
                                 const struct tn_analysis *analysis, struct tarn_error *error)
{
    return instant_put(report, analysis, TARN_AT_END, error);
}

enum tarn_status tarn_report_peak(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *options,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_report_traces(snapshot, options, "tarn.peak/1", peaks_put, writer, error);
}

enum tarn_status tarn_report_live(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *options,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_report_traces(snapshot, options, "tarn.live/1", live_put, writer, error);
}
