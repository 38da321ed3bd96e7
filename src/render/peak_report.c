/* SPDX-License-Identifier: MIT */
/* `tarn peak` and `tarn live`: the holders of memory at one time point or two. */
#include "render/category_hint.h"
#include "render/holders_table.h"

#include <stdio.h>

enum {
    PATH_MAX_BYTES = 64
};

static void line_put(struct tn_text_out *out, uint64_t bytes, const char *what)
{
    tn_text_put_size(out, (double)bytes);
    tn_text_printf(out, "          %s\n", what);
}

/* What is not in the table, and what of it is from before. */
static void around_put(struct tn_text_out *out, const struct tarn_report_head *head,
                       const struct tarn_composition *composition)
{
    if (head->is_part) {
        line_put(out, composition->at.left_out, "requested by blocks that are not selected");
    }
    if (composition->unallocated != TARN_NONE) {
        line_put(out, composition->unallocated,
                 "reserved but not requested: cached, between blocks, or lost to rounding");
    }
    if (composition->holders.total.bytes_before > 0 && head->events > 0) {
        line_put(out, composition->holders.total.bytes_before,
                 head->first_event > 0 ? "of the total was allocated before that part"
                                       : "of the total was allocated before the first event");
    }
}

static void hint_put(struct tn_document *document, const struct tarn_holders *holders)
{
    const struct tn_unnamed unnamed = {.total = holders->total.bytes,
                                       .without_frames = holders->bytes_without_frames,
                                       .before = holders->unclassified.bytes_before};

    tn_category_hint_put(document, &unnamed);
}

static void tables_put(struct tn_document *document, const struct tarn_report_options *options,
                       const struct tarn_holders *holders, const char *key)
{
    const struct tn_rows tree = {.rows = holders->tree, .count = holders->tree_count};
    char path[PATH_MAX_BYTES];

    if (!document->text || !options->tree) {
        (void)snprintf(path, sizeof path, "%s.groups", key);
        tn_holders_put(document, &tn_holders_table, path, holders);
    }
    if (options->tree) {
        (void)snprintf(path, sizeof path, "%s.tree", key);
        tn_table_put(document, &tn_holders_tree_table, path, &tree);
    }
}

/* `what` is the name of the time point in text, `key` in JSON; `whole_peak` is that of all blocks
 * if the time point is a peak of requested bytes, else the time point itself. */
static void composition_put(struct tn_document *document, const struct tarn_report_options *options,
                            const struct tarn_report_head *head,
                            const struct tarn_composition *composition,
                            const struct tarn_time_point *whole_peak, const char *what,
                            const char *key)
{
    if (document->json) {
        tn_json_open_object(document->json, key);
        tn_time_point_put_json(document->json, &composition->at);
    } else if (document->text) {
        tn_text_putc(document->text, '\n');
        tn_time_point_put(document->text, head, what, &composition->at);
        tn_own_peak_put(document->text, head, &composition->at, whole_peak);
    }
    tables_put(document, options, &composition->holders, key);
    if (document->json) {
        tn_json_close(document->json);
    } else if (document->text) {
        around_put(document->text, head, composition);
        hint_put(document, &composition->holders);
    }
}

/* As max_memory_allocated() and max_memory_reserved() have it. */
static void headline_put(struct tn_text_out *out, const struct tarn_peak_result *peak)
{
    tn_text_printf(out, "peak: %s allocated", tn_text_size(out, (double)peak->allocated_peak).text);
    tn_text_printf(out, ", %s requested",
                   tn_text_size(out, (double)peak->whole_peak.requested).text);
    tn_text_printf(out, "; %s reserved\n",
                   tn_text_size(out, (double)peak->whole_reserved_peak).text);
}

static void peak_put(struct tn_document *document, const struct tarn_report_options *options,
                     const void *result)
{
    const struct tarn_peak_result *peak = result;

    if (document->text) {
        headline_put(document->text, peak);
    } else if (document->json) {
        tn_json_number(document->json, "allocated_peak_bytes", peak->allocated_peak);
    }
    composition_put(document, options, &peak->head, &peak->requested_peak, &peak->whole_peak,
                    "requested peak", "requested_peak");
    composition_put(document, options, &peak->head, &peak->reserved_peak, &peak->reserved_peak.at,
                    "reserved peak", "reserved_peak");
    if (document->json) {
        tn_json_open_object(document->json, "peak_of_all_blocks");
        tn_time_point_put_json(document->json, &peak->whole_peak);
        tn_json_close(document->json);
    }
}

static void live_put(struct tn_document *document, const struct tarn_report_options *options,
                     const void *result)
{
    const struct tarn_live_result *live = result;

    composition_put(document, options, &live->head, &live->composition, &live->composition.at,
                    "memory", "instant");
}

static const struct tn_row_table *const tables[] = {&tn_holders_table, &tn_holders_tree_table,
                                                    NULL};

static enum tarn_status live_report(const struct tarn_snapshot *snapshot, const char *schema,
                                    const struct tarn_report_options *options,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct tn_device_report report = {.schema = schema,
                                            .compute = tn_live_compute,
                                            .scope = TN_REPORT_STATE,
                                            .result_size = sizeof(struct tarn_live_result),
                                            .tables = tables,
                                            .put = live_put};

    return tn_devices_report(&report, snapshot, options, writer, error);
}

enum tarn_status tarn_report_peak(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *options,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_device_report report = {.schema = "tarn.peak/1",
                                                   .compute = tn_peak_compute,
                                                   .result_size = sizeof(struct tarn_peak_result),
                                                   .tables = tables,
                                                   .put = peak_put};

    if (options && options->selection && options->selection->at.kind != TARN_AT_UNSPECIFIED) {
        return live_report(snapshot, report.schema, options, writer, error);
    }
    return tn_devices_report(&report, snapshot, options, writer, error);
}

enum tarn_status tarn_report_live(const struct tarn_snapshot *snapshot,
                                  const struct tarn_report_options *options,
                                  const struct tarn_writer *writer, struct tarn_error *error)
{
    return live_report(snapshot, "tarn.live/1", options, writer, error);
}
