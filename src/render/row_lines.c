/* SPDX-License-Identifier: MIT */
/* The rows of tables one by one: JSON lines and CSV. */
#include "base/assertion.h"
#include "base/csv_text.h"
#include "render/row.h"
#include "render/table.h"

#include <inttypes.h>
#include <string.h>

enum {
    CSV_COLUMNS_MAX = 64 /* of all tables of a document */
};

static const char *const part_names[] = {
    [TN_IN_ROWS] = "row", [TN_IN_OTHERS] = "others", [TN_IN_TOTAL] = "total"};

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
        tn_row_put_members(&json, record->table->context, document->context, TN_IN_ROWS);
    }
    tn_json_word(&json, "table", record->path);
    tn_json_word(&json, "part", part_names[record->in]);
    if (record->in == TN_IN_OTHERS) {
        tn_json_number(&json, tn_table_others_key(document, record->table), record->other_count);
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

static void numbers_cell_put(struct tn_text_out *out, struct tn_numbers numbers)
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
    const struct tarn_group *group = tn_row_group(column, row);

    if (column->kind == TN_ROW_ADDRESS) {
        tn_text_printf(out, "\"0x%" PRIx64 "\"", tn_row_number(row, column->at));
    } else if (column->kind == TN_ROW_NUMBERS) {
        numbers_cell_put(out, tn_row_numbers(row, column));
    } else if (column->kind == TN_ROW_CHOICE || column->kind == TN_ROW_WORD ||
               column->kind == TN_ROW_TEXT) {
        tn_csv_put(out, tn_row_text(row, column), strlen(tn_row_text(row, column)));
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
        if (tn_row_number(row, column->at) != TARN_NONE) {
            tn_json_number(&bare, NULL, tn_row_number(row, column->at));
        }
        break;
    case TN_ROW_ANSWER:
        if (*(const enum tarn_answer *)tn_row_member(row, column->at) != TARN_ANSWER_UNKNOWN) {
            tn_row_put_member(&bare, &nameless, row);
        }
        break;
    default:
        tn_row_put_member(&bare, &nameless, row);
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
        const char *own = tn_row_key(by, column);

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
    } else if (column && tn_row_has(column, record->in, record->row)) {
        cell_put(out, column, record->row);
    } else if (record->in == TN_IN_OTHERS &&
               strcmp(key, tn_table_others_key(names->document, record->table)) == 0) {
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
        const char *key = tn_row_key(names->document->by, column);

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
            name_put(&names, tn_table_others_key(document, *table));
        }
    }
    tn_text_putc(&document->out, '\n');
}

void tn_csv_names_put(struct tn_document *document)
{
    csv_line_put(document, NULL);
}

static void record_put(struct tn_document *document, const struct record *record)
{
    if (document->format == TARN_REPORT_CSV) {
        csv_line_put(document, record);
    } else {
        json_line_put(document, record);
    }
}

void tn_row_lines_put(struct tn_document *document, const struct tn_row_table *table,
                      const char *path, const struct tn_rows *rows)
{
    struct record record = {.table = table, .path = path, .in = TN_IN_ROWS};

    for (size_t i = 0; i < rows->count; i++) {
        record.row = tn_row_member(rows->rows, i * table->row_size);
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
