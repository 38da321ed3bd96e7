/* SPDX-License-Identifier: MIT */
#include "render/table.h"

#include "analysis/group_key.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/plural.h"
#include "render/label_fit.h"
#include "render/row.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CELL_MAX = 64
};

/* ---- text ---- */

static bool is_last(const struct tn_row_column *column)
{
    return column->kind == TN_ROW_GROUP || column->kind == TN_ROW_NAME ||
           column->kind == TN_ROW_CHAIN || column->kind == TN_ROW_LABEL;
}

/* With the blanks before it; below 0: flush left. */
static int width_of(const struct tn_text_out *out, const struct tn_row_column *column)
{
    if (column->kind == TN_ROW_SIZE || column->kind == TN_ROW_CHANGE) {
        return tn_text_size_width(out) + (column->kind == TN_ROW_CHANGE);
    }
    return column->width < 0 ? column->width : column->width + 2;
}

static void padded_put(struct tn_text_out *out, const struct tn_row_column *column,
                       const char *text)
{
    const int width = width_of(out, column);

    tn_text_printf(out, "%s%*s", width < 0 ? "  " : "", width, text);
}

static void last_heading_put(const struct tn_document *document, const struct tn_row_column *column)
{
    const bool is_group = column->kind == TN_ROW_GROUP || column->kind == TN_ROW_NAME;

    if (is_group || *column->heading) {
        tn_text_printf(document->text, "  %s%s", column->heading,
                       is_group ? tn_grouping_heading(document->by) : "");
    }
}

static void heading_put(const struct tn_document *document, const struct tn_row_table *table,
                        const char *first)
{
    tn_text_style(document->text, TN_STYLE_BOLD);
    for (const struct tn_row_column *column = table->columns; column->kind; column++) {
        if (!column->heading) {
            continue;
        }
        if (is_last(column)) {
            last_heading_put(document, column);
        } else {
            padded_put(document->text, column, first ? first : column->heading);
        }
        first = NULL;
    }
    tn_text_style(document->text, TN_STYLE_PLAIN);
    tn_text_putc(document->text, '\n');
}

static void ratio_text(char cell[CELL_MAX], const struct tn_row_column *column, const void *row,
                       const void *total)
{
    const uint64_t of = column->kind == TN_ROW_SHARE
                            ? (total ? tn_row_number(total, column->at) : 0)
                            : tn_row_number(row, column->of);
    const uint64_t part = tn_row_number(row, column->at);

    if (column->kind == TN_ROW_FRACTION) {
        (void)snprintf(cell, CELL_MAX, "%3" PRIu64 " of %-3" PRIu64, part, of);
    } else if (column->kind != TN_ROW_MEAN) {
        (void)snprintf(cell, CELL_MAX, "%.1f%%", tn_percent(part, of));
    } else if (of == 0) {
        (void)snprintf(cell, CELL_MAX, "-");
    } else if (column->decimals > 0) {
        (void)snprintf(cell, CELL_MAX, "%.*f", column->decimals, (double)part / (double)of);
    } else {
        (void)snprintf(cell, CELL_MAX, "%" PRIu64, part / of);
    }
}

static void change_text(char cell[CELL_MAX], const struct tn_text_out *out, double change)
{
    (void)snprintf(cell, CELL_MAX, "%c%s", change < 0 ? '-' : '+',
                   tn_text_size(out, change < 0 ? -change : change).text);
}

void tn_change_put(struct tn_text_out *out, int width, double change)
{
    char cell[CELL_MAX];

    change_text(cell, out, change);
    tn_text_printf(out, "%*s", width, cell);
}

static void cell_text(char cell[CELL_MAX], const struct tn_text_out *out,
                      const struct tn_row_column *column, const void *row, const void *total)
{
    switch ((int)column->kind) {
    case TN_ROW_SIZE:
        (void)snprintf(cell, CELL_MAX, "%s",
                       tn_text_size(out, (double)tn_row_number(row, column->at)).text);
        break;
    case TN_ROW_CHANGE:
        change_text(cell, out, (double)*(const int64_t *)tn_row_member(row, column->at));
        break;
    case TN_ROW_EVENT:
        if (tn_row_number(row, column->at) == TARN_NONE) {
            (void)snprintf(cell, CELL_MAX, "-");
        } else {
            (void)snprintf(cell, CELL_MAX, "%" PRIu64, tn_row_number(row, column->at));
        }
        break;
    case TN_ROW_COUNT:
        (void)snprintf(cell, CELL_MAX, "%" PRIu64, tn_row_number(row, column->at));
        break;
    case TN_ROW_SIGNED:
        (void)snprintf(cell, CELL_MAX, "%+" PRId64,
                       *(const int64_t *)tn_row_member(row, column->at));
        break;
    case TN_ROW_REAL:
        (void)snprintf(cell, CELL_MAX, "%.1f", *(const double *)tn_row_member(row, column->at));
        break;
    case TN_ROW_SHARE:
    case TN_ROW_PERCENT:
    case TN_ROW_MEAN:
    case TN_ROW_FRACTION:
        ratio_text(cell, column, row, total);
        break;
    case TN_ROW_ADDRESS:
        (void)snprintf(cell, CELL_MAX, "0x%" PRIx64, tn_row_number(row, column->at));
        break;
    case TN_ROW_WORD:
        (void)snprintf(cell, CELL_MAX, "%s", tn_row_text(row, column));
        break;
    default: /* the last one, or not in text */
        break;
    }
}

static void last_put(struct tn_text_out *out, const struct tn_row_column *column, const void *row)
{
    if (column->kind == TN_ROW_LABEL) {
        column->put(out, row);
        return;
    }
    if (column->kind == TN_ROW_CHAIN) {
        const struct tarn_call *call = tn_row_member(row, column->at);

        tn_text_printf(out, "%*s", (int)(call->depth < 1000 ? 2 * call->depth : 2000), "");
    }
    tn_text_puts(out, tn_row_group(column, row)->text);
}

/* `label` NULL: a row, else a sum of that name, or the row's group made shorter. */
static void line_put(const struct tn_document *document, const struct tn_row_table *table, int in,
                     const void *row, const void *total, const char *label)
{
    struct tn_text_out *out = document->text;

    for (const struct tn_row_column *column = table->columns; column->kind; column++) {
        char cell[CELL_MAX] = "";

        if (!column->heading) {
            continue;
        }
        if (!is_last(column)) {
            if (tn_row_has(column, in, row)) {
                cell_text(cell, out, column, row, total);
            }
            padded_put(out, column, cell);
        } else if (label) {
            tn_text_printf(out, "  %s", label);
        } else {
            tn_text_puts(out, "  ");
            last_put(out, column, row);
        }
    }
    tn_text_putc(out, '\n');
}

const char *tn_table_others_key(const struct tn_document *document,
                                const struct tn_row_table *table)
{
    return table->others_key ? table->others_key : tn_grouping_plural(document->by);
}

/* Columns before the last one; 0 when the table has none of a group. */
static size_t columns_before(const struct tn_document *document, const struct tn_row_table *table,
                             const struct tn_row_column **group_out)
{
    size_t columns = 2;

    for (const struct tn_row_column *column = table->columns; column->kind; column++) {
        if (!column->heading) {
            continue;
        }
        if (is_last(column)) {
            *group_out = column;
            return column->kind == TN_ROW_GROUP || column->kind == TN_ROW_NAME ? columns : 0;
        }
        const int width = width_of(document->text, column);

        columns += width < 0 ? (size_t)-width + 2 : (size_t)width;
    }
    return 0;
}

/* Without host memory labels stay as they are. */
static void labels_fit(const struct tn_document *document, const struct tn_row_table *table,
                       const struct tn_rows *rows, struct tn_label_fit *fit)
{
    const struct tn_row_column *group = NULL;
    const size_t before = columns_before(document, table, &group);

    if (document->columns == 0 || before == 0 || rows->count == 0) {
        return;
    }
    const char **labels = tn_host_alloc(rows->count * sizeof *labels);

    for (size_t i = 0; labels && i < rows->count; i++) {
        labels[i] = tn_row_group(group, tn_row_member(rows->rows, i * table->row_size))->text;
    }
    if (!labels ||
        !tn_label_fit_init(fit, labels, rows->count,
                           document->columns > before ? document->columns - before : 0)) {
        *fit = (struct tn_label_fit){.count = 0};
    }
    tn_host_free(labels, rows->count * sizeof *labels);
}

static void text_put(const struct tn_document *document, const struct tn_row_table *table,
                     const struct tn_rows *rows)
{
    const void *whole = rows->total || rows->count == 0 ? rows->total : rows->rows;
    char label[CELL_MAX];

    struct tn_label_fit fit = {.count = 0};

    labels_fit(document, table, rows, &fit);
    heading_put(document, table, rows->first_heading);
    for (size_t i = 0; i < rows->count; i++) {
        line_put(document, table, TN_IN_ROWS, tn_row_member(rows->rows, i * table->row_size), whole,
                 fit.count > 0 ? fit.texts[i] : NULL);
    }
    tn_label_fit_fini(&fit);
    if (rows->others && rows->other_count > 0) {
        (void)snprintf(label, sizeof label, "others (%" PRIu64 " %s)", rows->other_count,
                       tn_plural(rows->other_count, tn_table_others_key(document, table)).text);
        line_put(document, table, TN_IN_OTHERS, rows->others, rows->total, label);
    }
    if (rows->total) {
        line_put(document, table, TN_IN_TOTAL, rows->total, rows->total, "total");
    }
}

void tn_table_put_row(struct tn_document *document, const struct tn_row_table *table,
                      const struct tn_rows *rows, const void *row, const char *label)
{
    if (document->text) {
        line_put(document, table, TN_IN_TOTAL, row, rows->total, label);
    }
}

/* ---- JSON ---- */

void tn_members_put(struct tn_json_text *json, const struct tn_row_table *table, const void *row,
                    int in)
{
    tn_row_put_members(json, table->columns, row, in);
}

void tn_object_put(struct tn_json_text *json, const char *key, const struct tn_row_table *table,
                   const void *row, int in)
{
    tn_json_open_object(json, key);
    tn_members_put(json, table, row, in);
    tn_json_close(json);
}

static void json_put(const struct tn_document *document, const struct tn_row_table *table,
                     const char *path, const struct tn_rows *rows)
{
    struct tn_json_text *json = document->json;
    const char *dot = strrchr(path, '.');

    tn_json_open_array(json, dot ? dot + 1 : path);
    for (size_t i = 0; i < rows->count; i++) {
        tn_object_put(json, NULL, table, tn_row_member(rows->rows, i * table->row_size),
                      TN_IN_ROWS);
    }
    tn_json_close(json);
    if (rows->others) {
        tn_json_open_object(json, "others");
        tn_json_number(json, tn_table_others_key(document, table), rows->other_count);
        tn_members_put(json, table, rows->others, TN_IN_OTHERS);
        tn_json_close(json);
    }
    if (rows->total) {
        tn_object_put(json, "total", table, rows->total, TN_IN_TOTAL);
    }
}

/* ---- documents ---- */

void tn_table_put(struct tn_document *document, const struct tn_row_table *table, const char *path,
                  const struct tn_rows *rows)
{
    if (document->text) {
        text_put(document, table, rows);
    } else if (document->json) {
        json_put(document, table, path, rows);
    } else {
        tn_row_lines_put(document, table, path, rows);
    }
}

void tn_document_begin(struct tn_document *document, const struct tarn_report_options *options,
                       const char *schema, const struct tn_row_table *const *tables,
                       const struct tarn_writer *writer)
{
    *document = (struct tn_document){
        .format = options->format, .by = options->by, .has_trees = options->tree, .tables = tables};
    tn_text_init(&document->out, writer);
    document->out.units = options->units;
    document->out.color = options->color && options->format == TARN_REPORT_TEXT;
    document->columns = options->full_stacks ? 0 : options->columns;
    switch (options->format) {
    case TARN_REPORT_TEXT:
        document->text = &document->out;
        break;
    case TARN_REPORT_JSON:
        document->json = &document->json_out;
        tn_json_begin(document->json, &document->out, schema);
        break;
    case TARN_REPORT_JSONL:
        break;
    case TARN_REPORT_CSV:
        tn_csv_names_put(document);
        break;
    }
}

enum tarn_status tn_document_end(struct tn_document *document, struct tarn_error *error)
{
    if (document->json) {
        tn_json_end(document->json);
    }
    const enum tarn_status status = tn_text_finish(&document->out);

    return status ? tn_fail(error, status, "cannot write the report") : TARN_OK;
}
