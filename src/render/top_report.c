/* SPDX-License-Identifier: MIT */
/* `tarn top`: one table of groups, or a tree of calls. */
#include "base/plural.h"
#include "render/category_hint.h"
#include "render/document.h"

#include <inttypes.h>

#define AT(member) .at = offsetof(struct tarn_top_row, member)
#define OF(member) .of = offsetof(struct tarn_top_row, member)

#define NUMBERS                                                                                    \
    {"peak_bytes", "at peak", TN_ROW_SIZE, 0, AT(at_instant)},                                     \
        {"end_bytes", "at end", TN_ROW_SIZE, 0, AT(at_end)},                                       \
        {"allocated_bytes", "requested", TN_ROW_SIZE, 0, AT(allocated)},                           \
        {"allocations", "blocks", TN_ROW_COUNT, 8, AT(allocations)},                               \
        {"freed", NULL, TN_ROW_COUNT, 0, AT(freed)},                                               \
    {                                                                                              \
        "events_from_allocation_to_free", "lifetime", TN_ROW_MEAN, 8, AT(lifetime_events),         \
            OF(freed)                                                                              \
    }

static const struct tn_row_column columns[] = {
    NUMBERS, {NULL, "", TN_ROW_GROUP, 0, AT(group)}, {0}};

static const struct tn_row_column tree_columns[] = {TN_TREE_FIRST(struct tarn_top_row),
                                                    NUMBERS,
                                                    {NULL, "share", TN_ROW_SHARE, 6, AT(rank)},
                                                    TN_TREE_LAST(struct tarn_top_row),
                                                    {0}};

static const struct tn_row_table table = {.columns = columns,
                                          .row_size = sizeof(struct tarn_top_row),
                                          .context = tn_device_context,
                                          .has_others = true};

static const struct tn_row_table tree_table = {.columns = tree_columns,
                                               .row_size = sizeof(struct tarn_top_row),
                                               .context = tn_device_context,
                                               .is_tree = true};

static const char *instant_heading(const struct tarn_report_options *options)
{
    const enum tarn_instant_kind kind =
        options->selection ? options->selection->at.kind : TARN_AT_UNSPECIFIED;

    return kind == TARN_AT_UNSPECIFIED || kind == TARN_AT_PEAK ? NULL : "at instant";
}

static void tables_put(struct tn_document *document, const struct tarn_report_options *options,
                       const struct tarn_top_result *top)
{
    const struct tn_rows rows = {.rows = top->rows,
                                 .count = top->row_count,
                                 .others = &top->others,
                                 .other_count = top->other_count,
                                 .total = &top->total,
                                 .first_heading = instant_heading(options)};
    const struct tn_rows tree = {
        .rows = top->tree, .count = top->tree_count, .first_heading = rows.first_heading};

    if (!document->text || !options->tree) {
        tn_table_put(document, &table, "stacks", &rows);
    }
    if (options->tree) {
        tn_table_put(document, &tree_table, "tree", &tree);
    } else if (top->head.by == TARN_BY_CATEGORY) {
        tn_table_put_row(document, &table, &rows, &top->unclassified, "of it is unclassified");
    }
}

static void top_put(struct tn_document *document, const struct tarn_report_options *options,
                    const void *result)
{
    const struct tarn_top_result *top = result;

    if (document->text) {
        if (top->head.events > 0) {
            tn_text_printf(document->text, "device %d: %" PRIu64 " %s\n", top->head.device,
                           top->head.events, tn_plural(top->head.events, "events").text);
        } else {
            tn_text_printf(document->text, "device %d: no trace; blocks at the end of the file\n",
                           top->head.device);
        }
        tn_selection_put(document->text, options, &top->head);
        if (options->selection && options->selection->at.kind == TARN_AT_UNSPECIFIED) {
            tn_own_peak_put(document->text, &top->head, &top->at, &top->whole_peak);
        }
    } else if (document->json) {
        tn_json_open_object(document->json, "instant");
        tn_time_point_put_json(document->json, &top->at);
        tn_json_close(document->json);
        tn_json_open_object(document->json, "peak_of_all_blocks");
        tn_time_point_put_json(document->json, &top->whole_peak);
        tn_json_close(document->json);
    }
    tables_put(document, options, top);
    if (document->text && top->head.is_part) {
        tn_text_put_size(document->text, (double)top->at.left_out);
        tn_text_put_size(document->text, (double)top->left_out_at_end);
        tn_text_puts(document->text, "  requested by blocks that are not selected\n");
    }
    const struct tn_unnamed unnamed = {.total = top->total.at_instant,
                                       .without_frames = top->bytes_without_frames};

    tn_category_hint_put(document, &unnamed);
}

static const struct tn_row_table *const tables[] = {&table, &tree_table, NULL};

enum tarn_status tarn_report_top(const struct tarn_snapshot *snapshot,
                                 const struct tarn_report_options *options,
                                 const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_device_report report = {.schema = "tarn.top/1",
                                                   .compute = tn_top_compute,
                                                   .scope = TN_REPORT_STATE,
                                                   .result_size = sizeof(struct tarn_top_result),
                                                   .tables = tables,
                                                   .put = top_put,
                                                   .has_own_heading = true};

    return tn_devices_report(&report, snapshot, options, writer, error);
}
