/* SPDX-License-Identifier: MIT */
#include "render/table.h"

#include "analysis/group_key.h"
#include "base/assertion.h"
#include "base/csv_text.h"
#include "base/errinfo.h"
#include "base/escaped.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    CELL_MAX = 64,
    CSV_COLUMNS_MAX = 64 /* of all tables of a document */
};

static const char *const part_names[] = {
    [TN_IN_ROWS] = "row", [TN_IN_OTHERS] = "others", [TN_IN_TOTAL] = "total"};

/* ---- values ---- */

static const void *member(const void *row, size_t at)
{
    return (const char *)row + at;
}

static uint64_t number(const void *row, size_t at)
{
    return *(const uint64_t *)member(row, at);
}

static const char *text_of(const void *row, const struct tn_row_column *column)
{
    if (column->kind == TN_ROW_CHOICE) {
        return column->words[*(const int *)member(row, column->at)];
    }
    return *(const char *const *)member(row, column->at);
}

struct numbers {
    const uint64_t *items;
    size_t count;
};

static struct numbers numbers_of(const void *row, const struct tn_row_column *column)
{
    if (column->of == 0) {
        return (struct numbers){member(row, column->at), 2};
    }
    return (struct numbers){*(const uint64_t *const *)member(row, column->at),
                            *(const size_t *)member(row, column->of)};
}

static const char *key_of(enum tarn_grouping by, const struct tn_row_column *column)
{
    if (column->key) {
        return column->key;
    }
    switch ((int)column->kind) {
    case TN_ROW_GROUP:
        return by == TARN_BY_STACK ? "frames" : "name";
    case TN_ROW_CHAIN:
        return "frames";
    default:
        return NULL;
    }
}

/* Whether rows of that kind have it, and this row does. */
static bool has(const struct tn_row_column *column, int in, const void *row)
{
    const struct tarn_call *call = member(row, column->at);

    if (!((column->in ? column->in : TN_IN_ALL) & in)) {
        return false;
    }
    switch ((int)column->kind) {
    case TN_ROW_CHAIN:
        return call->kind == TARN_CALL_CHAIN;
    case TN_ROW_ITSELF:
        return call->kind == TARN_CALL_ITSELF;
    case TN_ROW_CALLEES:
        return call->kind == TARN_CALL_OTHERS;
    case TN_ROW_GROUP:
    case TN_ROW_FRAMES:
        return in == TN_IN_ROWS;
    default:
        return true;
    }
}

static const struct tarn_group *group_of(const struct tn_row_column *column, const void *row)
{
    return member(row, column->kind == TN_ROW_CHAIN ? column->of : column->at);
}

/* ---- text ---- */

static bool is_last(const struct tn_row_column *column)
{
    return column->kind == TN_ROW_GROUP || column->kind == TN_ROW_NAME ||
           column->kind == TN_ROW_CHAIN || column->kind == TN_ROW_LABEL;
}

static int width_of(const struct tn_text_out *out, const struct tn_row_column *column)
{
    if (column->kind == TN_ROW_SIZE || column->kind == TN_ROW_CHANGE) {
        return tn_text_size_width(out) + (column->kind == TN_ROW_CHANGE);
    }
    return column->width;
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
    for (const struct tn_row_column *column = table->columns; column->kind; column++) {
        if (!column->heading) {
            continue;
        }
        if (is_last(column)) {
            last_heading_put(document, column);
        } else {
            tn_text_printf(document->text, "  %*s", width_of(document->text, column),
                           first ? first : column->heading);
        }
        first = NULL;
    }
    tn_text_putc(document->text, '\n');
}

static double percent(uint64_t part, uint64_t all)
{
    return all > 0 ? (double)part / (double)all * 100 : 0.0;
}

static void ratio_text(char cell[CELL_MAX], const struct tn_row_column *column, const void *row,
                       const void *total)
{
    const uint64_t of = column->kind == TN_ROW_SHARE ? (total ? number(total, column->at) : 0)
                                                     : number(row, column->of);
    const uint64_t part = number(row, column->at);

    if (column->kind == TN_ROW_FRACTION) {
        (void)snprintf(cell, CELL_MAX, "%3" PRIu64 " of %-3" PRIu64, part, of);
    } else if (column->kind != TN_ROW_MEAN) {
        (void)snprintf(cell, CELL_MAX, "%.1f%%", percent(part, of));
    } else if (of == 0) {
        (void)snprintf(cell, CELL_MAX, "-");
    } else if (column->decimals > 0) {
        (void)snprintf(cell, CELL_MAX, "%.*f", column->decimals, (double)part / (double)of);
    } else {
        (void)snprintf(cell, CELL_MAX, "%" PRIu64, part / of);
    }
}

static void change_text(char cell[CELL_MAX], const struct tn_text_out *out, int64_t change)
{
    const double size = change < 0 ? -(double)change : (double)change;

    (void)snprintf(cell, CELL_MAX, "%c%s", change < 0 ? '-' : '+', tn_text_size(out, size).text);
}

static void cell_text(char cell[CELL_MAX], const struct tn_text_out *out,
                      const struct tn_row_column *column, const void *row, const void *total)
{
    switch ((int)column->kind) {
    case TN_ROW_SIZE:
        (void)snprintf(cell, CELL_MAX, "%s",
                       tn_text_size(out, (double)number(row, column->at)).text);
        break;
    case TN_ROW_CHANGE:
        change_text(cell, out, *(const int64_t *)member(row, column->at));
        break;
    case TN_ROW_COUNT:
    case TN_ROW_EVENT:
        (void)snprintf(cell, CELL_MAX, "%" PRIu64, number(row, column->at));
        break;
    case TN_ROW_SIGNED:
        (void)snprintf(cell, CELL_MAX, "%+" PRId64, *(const int64_t *)member(row, column->at));
        break;
    case TN_ROW_REAL:
        (void)snprintf(cell, CELL_MAX, "%.1f%s", *(const double *)member(row, column->at), "");
        break;
    case TN_ROW_SHARE:
    case TN_ROW_PERCENT:
    case TN_ROW_MEAN:
    case TN_ROW_FRACTION:
        ratio_text(cell, column, row, total);
        break;
    case TN_ROW_ADDRESS:
        (void)snprintf(cell, CELL_MAX, "0x%" PRIx64, number(row, column->at));
        break;
    case TN_ROW_WORD:
        (void)snprintf(cell, CELL_MAX, "%s", text_of(row, column));
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
        const struct tarn_call *call = member(row, column->at);

        tn_text_printf(out, "%*s", (int)(call->depth < 1000 ? 2 * call->depth : 2000), "");
    }
    tn_text_puts(out, group_of(column, row)->text);
}

/* `label` NULL: a row, else a sum of that name. */
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
            if (has(column, in, row)) {
                cell_text(cell, out, column, row, total);
            }
            tn_text_printf(out, "  %*s", width_of(out, column), cell);
        } else if (label) {
            tn_text_printf(out, "  %s", label);
        } else {
            tn_text_puts(out, "  ");
            last_put(out, column, row);
        }
    }
    tn_text_putc(out, '\n');
}

static const char *others_key(const struct tn_document *document, const struct tn_row_table *table)
{
    return table->others_key ? table->others_key : tn_grouping_plural(document->by);
}

static void text_put(const struct tn_document *document, const struct tn_row_table *table,
                     const struct tn_rows *rows)
{
    const void *whole = rows->total || rows->count == 0 ? rows->total : rows->rows;
    char label[CELL_MAX];

    heading_put(document, table, rows->first_heading);
    for (size_t i = 0; i < rows->count; i++) {
        line_put(document, table, TN_IN_ROWS, member(rows->rows, i * table->row_size), whole, NULL);
    }
    if (rows->others && rows->other_count > 0) {
        (void)snprintf(label, sizeof label, "others (%" PRIu64 " %s)", rows->other_count,
                       others_key(document, table));
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

static void frame_put(struct tn_json_text *json, const struct tarn_report_frame *frame)
{
    tn_json_open_object(json, NULL);
    tn_json_text(json, "name", frame->name, frame->name_length);
    tn_json_text(json, "filename", frame->filename, frame->filename_length);
    tn_json_signed(json, "line", frame->line);
    tn_json_close(json);
}

static void frames_put(struct tn_json_text *json, const char *key, const struct tarn_group *group)
{
    tn_json_open_array(json, key);
    for (size_t i = 0; i < group->frame_count; i++) {
        frame_put(json, &group->frames[i]);
    }
    tn_json_close(json);
}

static void group_put(struct tn_json_text *json, const char *key, const struct tarn_group *group)
{
    if (key) {
        tn_json_open_object(json, key);
    }
    if (group->name) {
        tn_json_word(json, "name", group->name);
    } else {
        frames_put(json, "frames", group);
    }
    if (key) {
        tn_json_close(json);
    }
}

static void numbers_put(struct tn_json_text *json, const char *key, struct numbers numbers)
{
    tn_json_open_array(json, key);
    for (size_t i = 0; i < numbers.count; i++) {
        tn_json_number(json, NULL, numbers.items[i]);
    }
    tn_json_close(json);
}

static void answer_put(struct tn_json_text *json, const char *key, enum tarn_answer answer)
{
    if (answer == TARN_ANSWER_UNKNOWN) {
        tn_json_null(json, key);
    } else {
        tn_json_bool(json, key, answer == TARN_ANSWER_YES);
    }
}

static void member_put(struct tn_json_text *json, const struct tn_row_column *column,
                       const void *row)
{
    const struct tarn_call *call = member(row, column->at);
    const char *key = column->key;

    switch ((int)column->kind) {
    case TN_ROW_SIZE:
    case TN_ROW_COUNT:
    case TN_ROW_SHARE:
    case TN_ROW_PERCENT:
    case TN_ROW_MEAN:
    case TN_ROW_FRACTION:
        tn_json_number(json, key, number(row, column->at));
        break;
    case TN_ROW_EVENT:
        tn_json_number_or_null(json, key, number(row, column->at), TARN_NONE);
        break;
    case TN_ROW_CHANGE:
    case TN_ROW_SIGNED:
        tn_json_signed(json, key, *(const int64_t *)member(row, column->at));
        break;
    case TN_ROW_INT:
        tn_json_signed(json, key, *(const int *)member(row, column->at));
        break;
    case TN_ROW_ADDRESS:
        tn_json_address(json, key, number(row, column->at));
        break;
    case TN_ROW_BOOL:
        tn_json_bool(json, key, *(const bool *)member(row, column->at));
        break;
    case TN_ROW_ANSWER:
        answer_put(json, key, *(const enum tarn_answer *)member(row, column->at));
        break;
    case TN_ROW_CHOICE:
    case TN_ROW_WORD:
    case TN_ROW_TEXT:
        tn_json_word(json, key, text_of(row, column));
        break;
    case TN_ROW_NUMBERS:
        numbers_put(json, key, numbers_of(row, column));
        break;
    case TN_ROW_FRAMES:
    case TN_ROW_CHAIN:
        frames_put(json, "frames", group_of(column, row));
        break;
    case TN_ROW_GROUP:
        group_put(json, key, group_of(column, row));
        break;
    case TN_ROW_ITSELF:
        tn_json_bool(json, key, true);
        break;
    case TN_ROW_CALLEES:
        tn_json_number(json, key, call->others);
        break;
    default: /* of text alone */
        break;
    }
}

static void columns_put(struct tn_json_text *json, const struct tn_row_column *columns,
                        const void *row, int in)
{
    for (const struct tn_row_column *column = columns; column->kind; column++) {
        if (key_of(TARN_BY_STACK, column) && has(column, in, row)) {
            member_put(json, column, row);
        }
    }
}

void tn_members_put(struct tn_json_text *json, const struct tn_row_table *table, const void *row,
                    int in)
{
    columns_put(json, table->columns, row, in);
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
        tn_object_put(json, NULL, table, member(rows->rows, i * table->row_size), TN_IN_ROWS);
    }
    tn_json_close(json);
    if (rows->others) {
        tn_json_open_object(json, "others");
        tn_json_number(json, others_key(document, table), rows->other_count);
        tn_members_put(json, table, rows->others, TN_IN_OTHERS);
        tn_json_close(json);
    }
    if (rows->total) {
        tn_object_put(json, "total", table, rows->total, TN_IN_TOTAL);
    }
}

/* ---- rows one by one ---- */

/* One row of a table. */
struct record {
    const struct tn_row_table *table;
    const char *path;
    int in;
    const void *row;
    uint64_t other_count; /* when it is those */
};

static void json_line_put(struct tn_document *document, const struct record *record)
{
    struct tn_json_text json;

    tn_json_init(&json, &document->out, TN_JSON_COMPACT);
    tn_json_open_object(&json, NULL);
    if (record->table->context) {
        columns_put(&json, record->table->context, document->context, TN_IN_ROWS);
    }
    tn_json_word(&json, "table", record->path);
    tn_json_word(&json, "part", part_names[record->in]);
    if (record->in == TN_IN_OTHERS) {
        tn_json_number(&json, others_key(document, record->table), record->other_count);
    }
    tn_members_put(&json, record->table, record->row, record->in);
    tn_json_end(&json);
}

static void frame_cell_put(struct tn_text_out *out, const struct tarn_report_frame *frame)
{
    tn_csv_put_part(out, frame->filename, frame->filename_length);
    tn_text_printf(out, ":%" PRId64 ":", frame->line);
    tn_csv_put_part(out, frame->name, frame->name_length);
}

/* Outermost first; a chain of calls is in that order already. */
static void frames_cell_put(struct tn_text_out *out, const struct tarn_group *group, bool is_chain)
{
    const size_t count = group->frame_count;

    for (size_t i = 0; i < count; i++) {
        const struct tarn_report_frame *frame = &group->frames[is_chain ? i : count - 1 - i];

        if (i == 0) {
            tn_csv_begin(out, frame->filename, frame->filename_length);
        } else {
            tn_text_putc(out, ';');
        }
        frame_cell_put(out, frame);
    }
    tn_text_puts(out, count > 0 ? "\"" : "");
}

static void numbers_cell_put(struct tn_text_out *out, struct numbers numbers)
{
    for (size_t i = 0; i < numbers.count; i++) {
        tn_text_printf(out, "%s%" PRIu64, i > 0 ? "," : "\"[", numbers.items[i]);
    }
    tn_text_puts(out, numbers.count > 0 ? "]\"" : "");
}

/* Of what is not plain in CSV: texts, stacks and lists in quotes. */
static void quoted_cell_put(struct tn_text_out *out, const struct tn_row_column *column,
                            const void *row)
{
    const struct tarn_group *group = group_of(column, row);

    if (column->kind == TN_ROW_ADDRESS) {
        tn_text_printf(out, "\"0x%" PRIx64 "\"", number(row, column->at));
    } else if (column->kind == TN_ROW_NUMBERS) {
        numbers_cell_put(out, numbers_of(row, column));
    } else if (column->kind == TN_ROW_CHOICE || column->kind == TN_ROW_WORD ||
               column->kind == TN_ROW_TEXT) {
        tn_csv_put(out, text_of(row, column), strlen(text_of(row, column)));
    } else if (column->kind == TN_ROW_GROUP && group->name) {
        tn_csv_put(out, group->name, strlen(group->name));
    } else {
        frames_cell_put(out, group, column->kind == TN_ROW_CHAIN);
    }
}

/* Numbers and truths are as in JSON. */
static void cell_put(struct tn_text_out *out, const struct tn_row_column *column, const void *row)
{
    struct tn_json_text bare = {.out = out};
    struct tn_row_column nameless = *column;

    nameless.key = NULL;
    switch ((int)column->kind) {
    case TN_ROW_ADDRESS:
    case TN_ROW_NUMBERS:
    case TN_ROW_CHOICE:
    case TN_ROW_WORD:
    case TN_ROW_TEXT:
    case TN_ROW_FRAMES:
    case TN_ROW_GROUP:
    case TN_ROW_CHAIN:
        quoted_cell_put(out, column, row);
        break;
    case TN_ROW_EVENT:
        if (number(row, column->at) != TARN_NONE) {
            tn_json_number(&bare, NULL, number(row, column->at));
        }
        break;
    case TN_ROW_ANSWER:
        if (*(const enum tarn_answer *)member(row, column->at) != TARN_ANSWER_UNKNOWN) {
            member_put(&bare, &nameless, row);
        }
        break;
    default:
        member_put(&bare, &nameless, row);
        break;
    }
}

/* ---- CSV ---- */

/* Writing one line of cells: names that were there do not come again. */
struct names {
    struct tn_document *document;
    const struct record *record; /* whose cells are written; NULL: the names are */
    const char *seen[CSV_COLUMNS_MAX];
    size_t count;
};

static const struct tn_row_column *column_find(enum tarn_grouping by,
                                               const struct tn_row_column *columns, const char *key)
{
    for (const struct tn_row_column *column = columns; column && column->kind; column++) {
        const char *own = key_of(by, column);

        if (own && strcmp(own, key) == 0) {
            return column;
        }
    }
    return NULL;
}

/* The cell of a row in the column of that name. */
static void record_cell_put(const struct names *names, const char *key)
{
    const struct record *record = names->record;
    const enum tarn_grouping by = names->document->by;
    struct tn_text_out *out = &names->document->out;
    const struct tn_row_column *context = column_find(by, record->table->context, key);
    const struct tn_row_column *column = column_find(by, record->table->columns, key);

    if (strcmp(key, "table") == 0) {
        tn_csv_put(out, record->path, strlen(record->path));
    } else if (strcmp(key, "part") == 0) {
        tn_csv_put(out, part_names[record->in], strlen(part_names[record->in]));
    } else if (context) {
        cell_put(out, context, names->document->context);
    } else if (column && has(column, record->in, record->row)) {
        cell_put(out, column, record->row);
    } else if (record->in == TN_IN_OTHERS &&
               strcmp(key, others_key(names->document, record->table)) == 0) {
        tn_text_printf(out, "%" PRIu64, record->other_count);
    }
}

static void name_put(struct names *names, const char *key)
{
    struct tn_text_out *out = &names->document->out;

    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->seen[i], key) == 0) {
            return;
        }
    }
    tn_assert(names->count < CSV_COLUMNS_MAX);
    tn_text_puts(out, names->count > 0 ? "," : "");
    names->seen[names->count++] = key;
    if (names->record) {
        record_cell_put(names, key);
    } else {
        tn_text_puts(out, key);
    }
}

static void columns_names_put(struct names *names, const struct tn_row_column *columns)
{
    for (const struct tn_row_column *column = columns; column && column->kind; column++) {
        const char *key = key_of(names->document->by, column);

        if (key) {
            name_put(names, key);
        }
    }
}

/* One line: the names of the columns of all tables, or the cells of a row below them. */
static void csv_line_put(struct tn_document *document, const struct record *record)
{
    struct names names = {.document = document, .record = record};

    for (const struct tn_row_table *const *table = document->tables; *table; table++) {
        if ((*table)->is_tree && !document->has_trees) {
            continue;
        }
        columns_names_put(&names, (*table)->context);
        name_put(&names, "table");
        name_put(&names, "part");
        columns_names_put(&names, (*table)->columns);
        if ((*table)->has_others) {
            name_put(&names, others_key(document, *table));
        }
    }
    tn_text_putc(&document->out, '\n');
}

/* ---- documents ---- */

static void record_put(struct tn_document *document, const struct record *record)
{
    if (document->format == TARN_REPORT_CSV) {
        csv_line_put(document, record);
    } else {
        json_line_put(document, record);
    }
}

static void records_put(struct tn_document *document, const struct tn_row_table *table,
                        const char *path, const struct tn_rows *rows)
{
    struct record record = {.table = table, .path = path, .in = TN_IN_ROWS};

    for (size_t i = 0; i < rows->count; i++) {
        record.row = member(rows->rows, i * table->row_size);
        record_put(document, &record);
    }
    if (rows->others) {
        record.in = TN_IN_OTHERS;
        record.row = rows->others;
        record.other_count = rows->other_count;
        record_put(document, &record);
    }
    if (rows->total) {
        record.in = TN_IN_TOTAL;
        record.row = rows->total;
        record_put(document, &record);
    }
}

void tn_table_put(struct tn_document *document, const struct tn_row_table *table, const char *path,
                  const struct tn_rows *rows)
{
    if (document->text) {
        text_put(document, table, rows);
    } else if (document->json) {
        json_put(document, table, path, rows);
    } else {
        records_put(document, table, path, rows);
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
        csv_line_put(document, NULL);
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
