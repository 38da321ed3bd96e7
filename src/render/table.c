/* SPDX-License-Identifier: MIT */
#include "render/table.h"

#include "analysis/group_key.h"
#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/plural.h"
#include "render/label_cut.h"
#include "render/row.h"
#include "render/share_bar.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CELL_MAX = 64,
    LABEL_MAX = 4096
};

/* ---- text ---- */

static bool is_last(const struct tn_row_column *column)
{
    return column->kind == TN_ROW_GROUP || column->kind == TN_ROW_NAME ||
           column->kind == TN_ROW_CHAIN || column->kind == TN_ROW_LABEL;
}

static bool is_shown(const struct tn_document *document, const struct tn_row_column *column)
{
    return column->heading && !(column->is_spare && document->hides_spare);
}

/* With the blanks before it; below 0: flush left. */
static int width_of(const struct tn_document *document, const struct tn_row_table *table,
                    const struct tn_row_column *column)
{
    const struct tn_text_out *out = document->text;
    const size_t number = (size_t)(column - table->columns);

    if (tn_always(number < TN_TABLE_COLUMNS_MAX) && document->widths[number] > 0) {
        return document->widths[number];
    }
    if (column->kind == TN_ROW_SIZE || column->kind == TN_ROW_CHANGE) {
        return tn_text_size_width(out) + (column->kind == TN_ROW_CHANGE);
    }
    return column->width < 0 ? column->width : column->width + 2;
}

static void padded_put(const struct tn_document *document, const struct tn_row_table *table,
                       const struct tn_row_column *column, const char *text)
{
    const int width = width_of(document, table, column);

    tn_text_printf(document->text, "%s%*s", width < 0 ? "  " : "", width, text);
}

/* Whether a bar follows the cells of a column. */
static bool has_bar(const struct tn_document *document, const struct tn_row_column *column)
{
    return document->bar > 0 && column->kind == TN_ROW_SHARE;
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
        if (!is_shown(document, column)) {
            continue;
        }
        if (is_last(column)) {
            last_heading_put(document, column);
        } else {
            padded_put(document, table, column, first ? first : column->heading);
            tn_text_printf(document->text, "%*s",
                           has_bar(document, column) ? (int)document->bar + 1 : 0, "");
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
        tn_no_case();
        break;
    }
}

/* Deep calls of a tree leave two thirds of a line to the label. */
static int indent_of(const struct tn_document *document, const struct tarn_call *call)
{
    const uint32_t deepest = document->columns > 0 ? document->columns / 6 : 1000;

    return (int)(2 * (call->depth < deepest ? call->depth : deepest));
}

static void last_put(const struct tn_document *document, const struct tn_row_column *column,
                     const void *row, const char *label)
{
    struct tn_text_out *out = document->text;

    if (column->kind == TN_ROW_LABEL) {
        column->put(out, row);
        return;
    }
    if (column->kind == TN_ROW_CHAIN) {
        tn_text_printf(out, "%*s", indent_of(document, tn_row_member(row, column->at)), "");
    }
    tn_text_puts(out, label ? label : tn_row_group(column, row)->text);
}

/* The total needs none: it is all of it. */
static void bar_put(const struct tn_document *document, const struct tn_row_column *column, int in,
                    const void *row, const void *total)
{
    const uint64_t all = total ? tn_row_number(total, column->at) : 0;
    const double percent = in == TN_IN_TOTAL ? 0 : tn_percent(tn_row_number(row, column->at), all);

    tn_text_putc(document->text, ' ');
    tn_share_bar_put(document->text, percent, document->bar, document->is_utf8);
}

/* `label` NULL: the row's own, else a sum's name, or the row's made shorter. */
static void line_put(const struct tn_document *document, const struct tn_row_table *table, int in,
                     const void *row, const void *total, const char *label)
{
    struct tn_text_out *out = document->text;

    for (const struct tn_row_column *column = table->columns; column->kind; column++) {
        char cell[CELL_MAX] = "";

        if (!is_shown(document, column)) {
            continue;
        }
        if (!is_last(column)) {
            if (tn_row_has(column, in, row)) {
                cell_text(cell, out, column, row, total);
            }
            padded_put(document, table, column, cell);
            if (has_bar(document, column)) {
                bar_put(document, column, in, row, total);
            }
        } else if (label && in != TN_IN_ROWS) {
            tn_text_printf(out, "  %s", label);
        } else {
            tn_text_puts(out, "  ");
            last_put(document, column, row, label);
        }
    }
    tn_text_putc(out, '\n');
}

const char *tn_table_others_key(const struct tn_document *document,
                                const struct tn_row_table *table)
{
    return table->others_key ? table->others_key : tn_grouping_plural(document->by);
}

/* ---- tables that fit a terminal ---- */

/* Columns before the last one, which is `last_out`. */
static size_t columns_before(const struct tn_document *document, const struct tn_row_table *table,
                             const struct tn_row_column **last_out)
{
    size_t columns = 2;

    *last_out = NULL;
    for (const struct tn_row_column *column = table->columns; column->kind; column++) {
        if (!is_shown(document, column)) {
            continue;
        }
        if (is_last(column)) {
            *last_out = column;
            break;
        }
        const int width = width_of(document, table, column);

        columns += width < 0 ? (size_t)-width + 2 : (size_t)width;
        columns += has_bar(document, column) ? document->bar + 1 : 0;
    }
    return columns;
}

static int wider(int width, const char *text)
{
    const int length = (int)strlen(text);

    return length > width ? length : width;
}

/* What the cells of a column need, its heading included, and two blanks. */
static int width_needed(const struct tn_document *document, const struct tn_row_table *table,
                        const struct tn_rows *rows, const struct tn_row_column *column,
                        const char *heading)
{
    const void *sums[] = {rows->others, rows->total};
    char cell[CELL_MAX] = "";
    int width = (int)strlen(heading);

    for (size_t i = 0; i < rows->count; i++) {
        const void *row = tn_row_member(rows->rows, i * table->row_size);

        if (tn_row_has(column, TN_IN_ROWS, row)) {
            cell_text(cell, document->text, column, row, rows->total ? rows->total : rows->rows);
            width = wider(width, cell);
        }
    }
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        if (sums[i] && tn_row_has(column, i > 0 ? TN_IN_TOTAL : TN_IN_OTHERS, sums[i])) {
            cell_text(cell, document->text, column, sums[i], rows->total);
            width = wider(width, cell);
        }
    }
    return width + 2;
}

/* Where little room is left for the last column, the others get no more than they need. */
static void widths_shrink(struct tn_document *document, const struct tn_row_table *table,
                          const struct tn_rows *rows)
{
    const struct tn_row_column *last;
    const char *first = rows->first_heading;

    memset(document->widths, 0, sizeof document->widths);
    document->hides_spare = false;
    document->bar = 0;
    if (document->columns == 0 || columns_before(document, table, &last) <= document->columns / 2) {
        return;
    }
    for (const struct tn_row_column *column = table->columns; column->kind && column != last;
         column++) {
        const size_t number = (size_t)(column - table->columns);

        if (is_shown(document, column) && tn_always(number < TN_TABLE_COLUMNS_MAX)) {
            const int own = width_of(document, table, column);
            const int needed =
                width_needed(document, table, rows, column, first ? first : column->heading);

            document->widths[number] = own > 0 && needed < own ? needed : 0;
            first = NULL;
        }
    }
    document->hides_spare = columns_before(document, table, &last) > document->columns + 2;
}

/* Without host memory labels stay as they are. */
static void labels_fit(const struct tn_document *document, const struct tn_row_table *table,
                       const struct tn_rows *rows, struct tn_label_fit *fit)
{
    const struct tn_row_column *last;
    const size_t before = columns_before(document, table, &last);
    const bool is_group = last && (last->kind == TN_ROW_GROUP || last->kind == TN_ROW_NAME);

    if (is_group && rows->count > 0 && document->columns > before) {
        tn_group_labels_fit(fit, tn_row_member(rows->rows, last->at), rows->count, table->row_size,
                            document->columns - before);
    } else {
        *fit = (struct tn_label_fit){.count = 0};
    }
}

/* The chain of a tree's row as far as it fits: siblings differ in its beginning. */
static const char *chain_fit(const struct tn_document *document, const struct tn_row_table *table,
                             const void *row, char *text, size_t size)
{
    const struct tn_row_column *last;
    const size_t before = columns_before(document, table, &last);

    if (document->columns == 0 || !last || last->kind != TN_ROW_CHAIN) {
        return NULL;
    }
    const size_t used = before + (size_t)indent_of(document, tn_row_member(row, last->at));
    const char *whole = tn_row_group(last, row)->text;
    const size_t fits =
        tn_label_cut_size(whole, document->columns > used ? document->columns - used : 0);

    if (whole[fits] == '\0' || fits + sizeof "..." > size) {
        return NULL;
    }
    (void)snprintf(text, size, "%.*s...", (int)fits, whole);
    return text;
}

static void text_put(struct tn_document *document, const struct tn_row_table *table,
                     const struct tn_rows *rows)
{
    const void *whole = rows->total || rows->count == 0 ? rows->total : rows->rows;
    struct tn_label_fit fit = {.count = 0};
    const struct tn_row_column *last;
    char label[LABEL_MAX];

    widths_shrink(document, table, rows);
    document->bar = tn_share_bar_width(document->columns, columns_before(document, table, &last));
    labels_fit(document, table, rows, &fit);
    heading_put(document, table, rows->first_heading);
    for (size_t i = 0; i < rows->count; i++) {
        const void *row = tn_row_member(rows->rows, i * table->row_size);

        line_put(document, table, TN_IN_ROWS, row, whole,
                 fit.count > 0 ? fit.texts[i]
                               : chain_fit(document, table, row, label, sizeof label));
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
    document->is_utf8 = options->is_utf8;
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
