/* SPDX-License-Identifier: MIT */
/*
 * What memory was made of when it was at its peaks: most bytes in use, and most bytes reserved,
 * which are often different moments. The first of equal moments counts.
 */
#include "tarn/report.h"

#include "base/size_text.h"
#include "report/group.h"
#include "report/report_out.h"

#include <inttypes.h>

/* One device's peaks with their compositions. */
struct peaks {
    struct tn_timeline timeline;
    struct tn_groups requested;
    struct tn_groups reserved;
};

static void moment_put(struct tn_text_out *out, const struct tn_timeline *timeline,
                       const char *what, const struct tn_moment *moment)
{
    tn_text_printf(out, "\n%s: %s reserved, %s in use, ", what,
                   tn_size_text((double)moment->reserved).text,
                   tn_size_text((double)moment->requested).text);
    if (moment->entry == TN_NEVER) {
        tn_text_puts(out, "before the first entry\n");
        return;
    }
    tn_text_printf(out, "at entry %" PRIu64 " of %" PRIu64 "\n", moment->entry,
                   timeline->trace->count);
}

/* Why reserved is more than in use. */
static void gap_put(struct tn_text_out *out, const struct tn_moment *moment,
                    const struct tn_groups *groups)
{
    const uint64_t gap =
        moment->reserved > moment->requested ? moment->reserved - moment->requested : 0;

    tn_text_printf(out,
                   "  %10s          reserved and not in use: cached, between blocks, or lost "
                   "to rounding\n",
                   tn_size_text((double)gap).text);
    if (groups->before > 0) {
        tn_text_printf(out, "  %10s          of the total was there before the first entry\n",
                       tn_size_text((double)groups->before).text);
    }
}

static void peaks_put(struct tn_text_out *out, const struct peaks *peaks, uint64_t limit)
{
    const struct tn_timeline *timeline = &peaks->timeline;

    tn_text_printf(out, "device %" PRId64 "\n", timeline->device);
    moment_put(out, timeline, "most in use", &timeline->requested_peak);
    tn_groups_put(out, timeline->model, &peaks->requested, limit);
    gap_put(out, &timeline->requested_peak, &peaks->requested);
    moment_put(out, timeline, "most reserved", &timeline->reserved_peak);
    tn_groups_put(out, timeline->model, &peaks->reserved, limit);
    gap_put(out, &timeline->reserved_peak, &peaks->reserved);
}

static void moment_put_json(struct tn_json_text *json, const char *key,
                            const struct tn_timeline *timeline, const struct tn_moment *moment,
                            const struct tn_groups *groups, uint64_t limit)
{
    tn_json_open_object(json, key);
    if (moment->entry == TN_NEVER) {
        tn_json_null(json, "entry");
    } else {
        tn_json_number(json, "entry", moment->entry);
    }
    tn_json_number(json, "requested_bytes", moment->requested);
    tn_json_number(json, "reserved_bytes", moment->reserved);
    tn_groups_put_json(json, timeline->model, groups, limit);
    tn_json_close(json);
}

static void peaks_put_json(struct tn_json_text *json, const struct peaks *peaks, uint64_t limit)
{
    const struct tn_timeline *timeline = &peaks->timeline;

    tn_json_open_object(json, NULL);
    tn_json_signed(json, "device", timeline->device);
    tn_json_number(json, "entries", timeline->trace->count);
    moment_put_json(json, "requested_peak", timeline, &timeline->requested_peak, &peaks->requested,
                    limit);
    moment_put_json(json, "reserved_peak", timeline, &timeline->reserved_peak, &peaks->reserved,
                    limit);
    tn_json_close(json);
}

static bool peaks_init(struct peaks *peaks, const struct tn_model *model, size_t device)
{
    if (!tn_timeline_init(&peaks->timeline, model, device)) {
        return false;
    }
    const struct tn_timeline *timeline = &peaks->timeline;

    if (tn_groups_collect(&peaks->requested, timeline, timeline->requested_peak.entry)) {
        if (tn_groups_collect(&peaks->reserved, timeline, timeline->reserved_peak.entry)) {
            return true;
        }
        tn_groups_fini(&peaks->requested);
    }
    tn_timeline_fini(&peaks->timeline);
    return false;
}

static void peaks_fini(struct peaks *peaks)
{
    tn_groups_fini(&peaks->reserved);
    tn_groups_fini(&peaks->requested);
    tn_timeline_fini(&peaks->timeline);
}

static bool device_put(const struct tn_report_out *report, size_t device)
{
    struct peaks peaks;

    if (!peaks_init(&peaks, report->model, device)) {
        return false;
    }
    if (report->json) {
        peaks_put_json(report->json, &peaks, report->limit);
    } else {
        peaks_put(report->out, &peaks, report->limit);
    }
    peaks_fini(&peaks);
    return true;
}

enum tarn_status tarn_report_peak(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *options,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    return tn_report_traces(snapshot, options, "tarn.peak/1", device_put, writer, error);
}
