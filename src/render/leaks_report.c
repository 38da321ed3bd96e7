/* SPDX-License-Identifier: MIT */
/* `tarn leaks`: which time points are compared, and the groups that grow. */
#include "analysis/group_key.h"
#include "base/plural.h"
#include "render/document.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    LABEL_MAX = 64
};

static const char *const point_words[] = {[TARN_LEAK_POINTS_STEPS] = "steps",
                                          [TARN_LEAK_POINTS_STACK] = "repeating stack",
                                          [TARN_LEAK_POINTS_PARTS] = "parts",
                                          [TARN_LEAK_POINTS_GUESSED] = "guessed parts"};

#define AT(member) .at = offsetof(struct tarn_leak_row, member)
#define OF(member) .of = offsetof(struct tarn_leak_row, member)

static const struct tn_row_column columns[] = {
    {"bytes_per_step", NULL, TN_ROW_CHANGE, 0, AT(growth), .in = TN_IN_ROWS},
    {"steps_that_grew", NULL, TN_ROW_COUNT, 0, AT(steps_grown), .in = TN_IN_ROWS},
    {"first_growth_event", NULL, TN_ROW_EVENT, 0, AT(first_growth_event), .in = TN_IN_ROWS},
    {"bytes", NULL, TN_ROW_NUMBERS, 0, AT(bytes), OF(point_count)},
    {NULL, "per step", TN_ROW_CHANGE, 0, AT(growth)},
    {NULL, "change", TN_ROW_CHANGE, 0, AT(change)},
    {NULL, "first", TN_ROW_SIZE, 0, AT(first)},
    {NULL, "last", TN_ROW_SIZE, 0, AT(last)},
    {"blocks", "blocks", TN_ROW_COUNT, 8, AT(blocks)},
    {NULL, "grew in", TN_ROW_FRACTION, -10, AT(steps_grown), OF(steps), .in = TN_IN_ROWS},
    {NULL, "from", TN_ROW_COUNT, 7, AT(first_growth_event), .in = TN_IN_ROWS},
    {NULL, "", TN_ROW_GROUP, 0, AT(group)},
    {0}};

static const struct tn_row_table table = {.columns = columns,
                                          .row_size = sizeof(struct tarn_leak_row),
                                          .context = tn_device_context,
                                          .has_others = true};

/* ---- text ---- */

static void points_put(struct tn_text_out *out, const struct tarn_leaks_result *leaks)
{
    tn_text_printf(out, "compared at %zu points in time", leaks->point_count);
    if (leaks->point_count < leaks->points_found) {
        tn_text_printf(out, " of %" PRIu64, leaks->points_found);
    }
    switch (leaks->points_by) {
    case TARN_LEAK_POINTS_STEPS:
        tn_text_puts(out, ", the ends of steps");
        break;
    case TARN_LEAK_POINTS_STACK:
        tn_text_puts(out, ", where this repeats: ");
        tn_text_puts(out, leaks->repeated.text);
        break;
    case TARN_LEAK_POINTS_PARTS:
        tn_text_puts(out, ", the ends of equal parts");
        break;
    case TARN_LEAK_POINTS_GUESSED:
        tn_text_puts(out, ", the ends of equal parts, for lack of steps (--steps N sets "
                          "their number)");
        break;
    }
    tn_text_puts(out, "\n\n");
}

/* The table, and all sums below it, if anything grows. */
static void table_put(struct tn_document *document, const struct tarn_leaks_result *leaks)
{
    const char *plural = tn_grouping_plural(leaks->head.by);
    const struct tn_rows rows = {.rows = leaks->rows, .count = leaks->row_count};
    char label[LABEL_MAX];

    if (leaks->leak_count == 0) {
        tn_text_puts(document->text, "no growth found\n");
        return;
    }
    tn_text_printf(document->text, "%s that keep growing: %zu\n", plural, leaks->leak_count);
    tn_table_put(document, &table, "groups", &rows);
    if (leaks->more_count > 0) {
        (void)snprintf(label, sizeof label, "others that grow (%zu %s)", leaks->more_count,
                       tn_plural(leaks->more_count, plural).text);
        tn_table_put_row(document, &table, &rows, &leaks->more, label);
    }
    (void)snprintf(label, sizeof label, "others (%zu %s)", leaks->other_count,
                   tn_plural(leaks->other_count, plural).text);
    tn_table_put_row(document, &table, &rows, &leaks->others, label);
    if (leaks->suppressed_blocks > 0) {
        tn_table_put_row(document, &table, &rows, &leaks->suppressed, "suppressed");
    }
    tn_table_put_row(document, &table, &rows, &leaks->total, "total");
}

static void text_put(struct tn_document *document, const struct tarn_leaks_result *leaks)
{
    struct tn_text_out *out = document->text;

    points_put(out, leaks);
    if (leaks->point_count < TARN_LEAK_POINTS_MIN) {
        tn_text_printf(out, "too few to tell what grows: at least %d are needed\n",
                       TARN_LEAK_POINTS_MIN);
        return;
    }
    table_put(document, leaks);
    if (leaks->head.is_part) {
        tn_text_printf(out, "  %s requested at the end are not selected\n",
                       tn_text_size(out, (double)leaks->left_out_at_end).text);
    }
}

/* ---- devices ---- */

static void points_put_json(struct tn_json_text *json, const struct tarn_leaks_result *leaks)
{
    tn_json_word(json, "points_by", point_words[leaks->points_by]);
    tn_json_open_array(json, "points");
    for (size_t i = 0; i < leaks->point_count; i++) {
        tn_json_number(json, NULL, leaks->points[i]);
    }
    tn_json_close(json);
    tn_json_number(json, "leaks", leaks->leak_count);
}

static void leaks_put(struct tn_document *document, const struct tarn_report_options *options,
                      const void *result)
{
    const struct tarn_leaks_result *leaks = result;
    const struct tn_rows rows = {.rows = leaks->rows,
                                 .count = leaks->row_count,
                                 .others = &leaks->others,
                                 .other_count = leaks->other_count,
                                 .total = &leaks->total};

    (void)options;
    if (document->text) {
        text_put(document, leaks);
        return;
    }
    if (document->json) {
        points_put_json(document->json, leaks);
    }
    tn_table_put(document, &table, "groups", &rows);
    if (document->json) {
        tn_object_put(document->json, "more_that_grow", &table, &leaks->more, TN_IN_TOTAL);
        tn_object_put(document->json, "suppressed", &table, &leaks->suppressed, TN_IN_TOTAL);
    }
}

static const struct tn_row_table *const tables[] = {&table, NULL};

enum tarn_status tarn_report_leaks(const struct tarn_snapshot *snapshot,
                                   const struct tarn_report_options *options,
                                   const struct tarn_writer *writer, struct tarn_error *error)
{
    static const struct tn_device_report report = {.schema = "tarn.leaks/1",
                                                   .compute = tn_leaks_compute,
                                                   .result_size = sizeof(struct tarn_leaks_result),
                                                   .tables = tables,
                                                   .put = leaks_put};

    return tn_devices_report(&report, snapshot, options, writer, error);
}
