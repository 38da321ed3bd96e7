/* SPDX-License-Identifier: MIT */
/* `tarn ranks`: the ranks, and how each outlier differs from the typical one. */
#include "render/ranks_report.h"

#include "base/escaped.h"
#include "base/plural.h"
#include "render/changes_table.h"

#include <string.h>

#define AT(member) .at = offsetof(struct tn_rank, member)

static void file_put(struct tn_text_out *out, const struct tn_rank *rank)
{
    tn_text_put_escaped(out, rank->file, strlen(rank->file), TN_ESCAPED_PLAIN);
    tn_text_printf(out, ", device %d", rank->device);
}

static void label_put(struct tn_text_out *out, const void *row)
{
    const struct tn_rank *rank = row;

    file_put(out, rank);
    tn_text_puts(out, rank->is_outlier ? "  outlier" : "");
}

static const struct tn_row_column columns[] = {
    {"file", NULL, TN_ROW_TEXT, 0, AT(file)},
    {"device", NULL, TN_ROW_INT, 0, AT(device)},
    {"requested_bytes", "requested", TN_ROW_SIZE, 0, AT(requested)},
    {"left_out_bytes", NULL, TN_ROW_SIZE, 0, AT(left_out)},
    {"reserved_peak_bytes", "reserved", TN_ROW_SIZE, 0, AT(reserved_peak)},
    {NULL, "distance", TN_ROW_REAL, 8, AT(distance), .in = TN_IN_ROWS},
    {"is_outlier", NULL, TN_ROW_BOOL, 0, AT(is_outlier)},
    {NULL, "", TN_ROW_LABEL, .put = label_put},
    {0}};

const struct tn_row_table tn_ranks_table = {
    .columns = columns, .row_size = sizeof(struct tn_rank), .others_key = "ranks"};

/* What the changes of an outlier are of. */
static const struct tn_row_column outlier_context[] = {
    {"file", NULL, TN_ROW_TEXT, 0, AT(file)}, {"device", NULL, TN_ROW_INT, 0, AT(device)}, {0}};

const struct tn_row_table tn_ranks_changes_table = {.columns = tn_changes_columns,
                                                    .row_size = sizeof(struct tarn_change),
                                                    .context = outlier_context,
                                                    .has_others = true};

/* ---- all ranks ---- */

static void range_put(struct tn_text_out *out, const char *what, const struct tn_rank_range *range)
{
    tn_text_printf(out, "%s: min %s", what, tn_text_size(out, (double)range->least).text);
    tn_text_printf(out, ", median %s", tn_text_size(out, (double)range->median).text);
    tn_text_printf(out, ", max %s\n", tn_text_size(out, (double)range->most).text);
}

static void range_put_json(struct tn_json_text *json, const char *key,
                           const struct tn_rank_range *range)
{
    tn_json_open_object(json, key);
    tn_json_number(json, "least", range->least);
    tn_json_number(json, "median", range->median);
    tn_json_number(json, "most", range->most);
    tn_json_close(json);
}

static void ranks_text(struct tn_document *document, const struct tn_ranks_result *result)
{
    const struct tn_rows rows = {.rows = result->ranks,
                                 .count = result->rank_count - result->other_count,
                                 .others = &result->others,
                                 .other_count = result->other_count,
                                 .total = &result->total};

    tn_text_printf(document->text, "%zu %s\n", result->rank_count,
                   tn_plural(result->rank_count, "ranks").text);
    range_put(document->text, "requested", &result->requested);
    range_put(document->text, "reserved peak", &result->reserved_peak);
    tn_text_putc(document->text, '\n');
    tn_table_put(document, &tn_ranks_table, "ranks", &rows);
    if (result->rank_count < TN_RANKS_MIN) {
        tn_text_printf(document->text,
                       "too few ranks to tell which stands out: at least %d are needed\n",
                       TN_RANKS_MIN);
    } else if (result->outlier_count == 0) {
        tn_text_puts(document->text, "no rank stands out\n");
    }
}

/* All of them: programs have use for each. */
static void ranks_rows(struct tn_document *document, const struct tn_ranks_result *result)
{
    const struct tn_rows rows = {.rows = result->ranks, .count = result->rank_count};

    if (document->json) {
        range_put_json(document->json, "requested_bytes", &result->requested);
        range_put_json(document->json, "reserved_peak_bytes", &result->reserved_peak);
    }
    tn_table_put(document, &tn_ranks_table, "ranks", &rows);
    if (document->json) {
        tn_object_put(document->json, "typical", &tn_ranks_table, &result->typical, TN_IN_ROWS);
    }
}

/* ---- outliers ---- */

static void outlier_put(struct tn_document *document, const struct tn_ranks_result *result,
                        const struct tn_rank_outlier *outlier)
{
    document->context = &outlier->rank;
    if (document->text) {
        tn_text_putc(document->text, '\n');
        file_put(document->text, &outlier->rank);
        tn_text_puts(document->text, " (after) against ");
        file_put(document->text, &result->typical);
        tn_text_puts(document->text, " (before)\n");
    } else if (document->json) {
        tn_json_open_object(document->json, NULL);
        tn_json_word(document->json, "file", outlier->rank.file);
        tn_json_signed(document->json, "device", outlier->rank.device);
    }
    tn_changes_put(document, &tn_ranks_changes_table, "outliers.changes", &outlier->changes);
    if (document->json) {
        tn_json_close(document->json);
    }
}

void tn_ranks_put(struct tn_document *document, const struct tn_ranks_result *result)
{
    if (document->text) {
        ranks_text(document, result);
    } else {
        ranks_rows(document, result);
    }
    if (document->json) {
        tn_json_open_array(document->json, "outliers");
    }
    for (size_t i = 0; i < result->outlier_count; i++) {
        outlier_put(document, result, &result->outliers[i]);
    }
    if (document->json) {
        tn_json_close(document->json);
    }
}
