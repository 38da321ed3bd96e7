/* SPDX-License-Identifier: MIT */
/* `tarn steps`: what tells steps, which of them stands out, and all of them. */
#include "render/document.h"

#include <inttypes.h>

static const char *const point_words[] = {[TARN_LEAK_POINTS_STEPS] = "steps",
                                          [TARN_LEAK_POINTS_STACK] = "repeating stack",
                                          [TARN_LEAK_POINTS_PARTS] = "parts",
                                          [TARN_LEAK_POINTS_GUESSED] = "guessed parts"};

static const char *const kind_words[] = {
    [TARN_STEP_WHOLE] = "step", [TARN_STEP_BEFORE] = "before", [TARN_STEP_AFTER] = "after"};

static void label_put(struct tn_text_out *out, const void *row)
{
    const struct tarn_step *step = row;

    tn_text_printf(out, "%" PRIu64, step->first_event);
    if (step->is_outlier) {
        tn_text_style(out, TN_STYLE_RED);
        tn_text_puts(out, " outlier");
        tn_text_style(out, TN_STYLE_PLAIN);
    }
    if (step->ooms > 0) {
        tn_text_printf(out, " %" PRIu64 " OOM%s", step->ooms, step->ooms == 1 ? "" : "s");
    } else if (step->kind != TARN_STEP_WHOLE) {
        tn_text_printf(out, " %s", kind_words[step->kind]);
    }
}

#define AT(member) .at = offsetof(struct tarn_step, member)

static const struct tn_row_column columns[] = {
    {"kind", NULL, TN_ROW_CHOICE, 0, AT(kind), .words = kind_words, .in = TN_IN_ROWS},
    {"step", "step", TN_ROW_EVENT, 5, AT(number), .in = TN_IN_ROWS},
    {"first_event", NULL, TN_ROW_COUNT, 0, AT(first_event)},
    {"last_event", NULL, TN_ROW_COUNT, 0, AT(last_event)},
    {"peak_requested_bytes", "peak", TN_ROW_SIZE, 0, AT(peak)},
    {"peak_event", NULL, TN_ROW_EVENT, 0, AT(peak_event)},
    {"end_requested_bytes", "end", TN_ROW_SIZE, 0, AT(end)},
    {"growth_bytes", "growth", TN_ROW_CHANGE, 0, AT(growth)},
    {"peak_reserved_bytes", NULL, TN_ROW_SIZE, 0, AT(reserved_peak)},
    {"allocations", "allocs", TN_ROW_COUNT, 7, AT(allocations)},
    {"allocated_bytes", NULL, TN_ROW_SIZE, 0, AT(allocated)},
    {"device_calls", "calls", TN_ROW_COUNT, 5, AT(device_calls)},
    {"segment_allocs", NULL, TN_ROW_COUNT, 0, AT(segment_allocs)},
    {"segment_frees", NULL, TN_ROW_COUNT, 0, AT(segment_frees)},
    {"segment_maps", NULL, TN_ROW_COUNT, 0, AT(segment_maps)},
    {"segment_unmaps", NULL, TN_ROW_COUNT, 0, AT(segment_unmaps)},
    {"ooms", NULL, TN_ROW_COUNT, 0, AT(ooms)},
    {"is_outlier", NULL, TN_ROW_BOOL, 0, AT(is_outlier), .in = TN_IN_ROWS},
    {NULL, "from event", TN_ROW_LABEL, .put = label_put},
    {0}};

static const struct tn_row_table table = {.columns = columns,
                                          .row_size = sizeof(struct tarn_step),
                                          .context = tn_device_context,
                                          .has_others = true,
                                          .others_key = "steps"};

/* ---- text ---- */

static void points_put(struct tn_text_out *out, const struct tarn_steps_result *steps)
{
    tn_text_printf(out, "%" PRIu64, steps->step_count);
    switch (steps->points_by) {
    case TARN_LEAK_POINTS_STEPS:
        tn_text_puts(out, steps->step_count == 1 ? " annotated step\n" : " annotated steps\n");
        break;
    case TARN_LEAK_POINTS_STACK:
        tn_text_puts(out, " steps, which begin where this repeats:\n  ");
        tn_text_puts(out, steps->repeated.text);
        tn_text_putc(out, '\n');
        break;
    case TARN_LEAK_POINTS_PARTS:
        tn_text_puts(out, " equal parts of the trace\n");
        break;
    case TARN_LEAK_POINTS_GUESSED:
        tn_text_puts(out, " equal parts of the trace, for lack of steps (--parts N sets their "
                          "number)\n");
        break;
    }
}

static void outlier_put(struct tn_text_out *out, const struct tarn_steps_result *steps)
{
    const struct tarn_step *step = &steps->outlier;
    const bool is_above = step->peak > steps->median_peak;
    const uint64_t distance =
        is_above ? step->peak - steps->median_peak : steps->median_peak - step->peak;

    if (steps->points_by == TARN_LEAK_POINTS_PARTS ||
        steps->points_by == TARN_LEAK_POINTS_GUESSED) {
        return;
    }
    if (steps->outlier_count == 0) {
        tn_text_puts(out, "no step stands out by its peak\n");
        return;
    }
    tn_text_printf(out, "step %" PRIu64 " stands out: its peak is ", step->number);
    tn_text_printf(out, "%s %s ", tn_text_size(out, (double)distance).text,
                   is_above ? "above" : "below");
    tn_text_printf(out, "the median, %s\n", tn_text_size(out, (double)steps->median_peak).text);
}

static void calls_put(struct tn_text_out *out, const struct tarn_step *total)
{
    tn_text_printf(out,
                   "\ndevice calls: segments allocated %" PRIu64 ", freed %" PRIu64
                   "; memory mapped %" PRIu64 ", unmapped %" PRIu64 "\n",
                   total->segment_allocs, total->segment_frees, total->segment_maps,
                   total->segment_unmaps);
}

/* ---- devices ---- */

static void steps_put_json(struct tn_json_text *json, const struct tarn_steps_result *steps)
{
    tn_json_word(json, "points_by", point_words[steps->points_by]);
    tn_json_number(json, "step_count", steps->step_count);
    tn_json_number(json, "median_peak_requested_bytes", steps->median_peak);
    tn_json_number(json, "outliers", steps->outlier_count);
    tn_json_number_or_null(json, "outlier",
                           steps->outlier_count > 0 ? steps->outlier.number : TARN_NONE, TARN_NONE);
}

static void steps_put(struct tn_document *document, const struct tarn_report_options *options,
                      const void *result)
{
    const struct tarn_steps_result *steps = result;
    const struct tn_rows rows = {.rows = steps->rows,
                                 .count = steps->row_count,
                                 .others = &steps->others,
                                 .other_count = steps->other_count,
                                 .total = &steps->total};

    (void)options;
    if (document->text) {
        points_put(document->text, steps);
        outlier_put(document->text, steps);
        tn_text_putc(document->text, '\n');
    } else if (document->json) {
        steps_put_json(document->json, steps);
    }
    tn_table_put(document, &table, "steps", &rows);
    if (document->text) {
        calls_put(document->text, &steps->total);
    }
}

static const struct tn_row_table *const tables[] = {&table, NULL};

enum tarn_status tarn_report_steps(const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *options,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_device_report report = {.schema = "tarn.steps/1",
                                                   .compute = tn_steps_compute,
                                                   .result_size = sizeof(struct tarn_steps_result),
                                                   .tables = tables,
                                                   .put = steps_put};

    return tn_devices_report(&report, snapshot, options, writer, error);
}
