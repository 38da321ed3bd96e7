/* SPDX-License-Identifier: MIT */
#include "tracker/rst_table.h"

#include "base/assertion.h"
#include "base/escaped.h"

#include <string.h>

enum {
    HEAD_PADDING = 2,
    COLUMNS_MAX = 40
};

struct rst_cell {
    const char *text;
    size_t length;
    size_t width; /* columns on a terminal: characters */
};

void tn_rst_table_init(struct tn_rst_table *table, size_t columns)
{
    *table = (struct tn_rst_table){.columns = columns};
    tn_assert(columns > 0 && columns <= COLUMNS_MAX);
    tn_arena_init(&table->arena, &table->budget);
    tn_vec_init(&table->cells, sizeof(struct rst_cell));
}

void tn_rst_table_fini(struct tn_rst_table *table)
{
    tn_arena_fini(&table->arena);
    tn_vec_fini(&table->cells);
}

static size_t text_width(const char *text, size_t length)
{
    size_t width = 0;

    for (size_t at = 0; at < length; width++) {
        struct tn_escaped shown;

        at += tn_escaped_next(text + at, length - at, TN_ESCAPED_PLAIN, &shown);
        if (shown.text[0] == '\\' && shown.length > 1) { /* an escape */
            width += shown.length - 1;
        }
    }
    return width;
}

void tn_rst_table_add(struct tn_rst_table *table, const char *text)
{
    const bool begins_row = table->cells.count % table->columns == 0;
    const char *shown = begins_row && *text == '\0' ? ".." : text; /* else no row would begin */
    const size_t length = strlen(shown);
    const char *copy = tn_arena_copy_text(&table->arena, shown, length);
    struct rst_cell *cell = copy ? tn_vec_push(&table->cells) : NULL;

    if (!cell) {
        table->failed = true;
        return;
    }
    *cell = (struct rst_cell){copy, length, text_width(copy, length)};
}

size_t tn_rst_table_rows(const struct tn_rst_table *table)
{
    return (table->cells.count + table->columns - 1) / table->columns;
}

static const struct rst_cell *row_at(const struct tn_rst_table *table, size_t row)
{
    return (const struct rst_cell *)table->cells.items + row * table->columns;
}

static void put_repeated(struct tn_text_out *out, char c, size_t count)
{
    for (; count > 0; count--) {
        tn_text_putc(out, c);
    }
}

static void put_line(const struct tn_rst_table *table, struct tn_text_out *out,
                     const size_t *widths)
{
    for (size_t i = 0; i < table->columns; i++) {
        tn_text_puts(out, i > 0 ? "  " : "");
        put_repeated(out, '=', widths[i]);
    }
    tn_text_putc(out, '\n');
}

/* No blanks at the end: those before a cell wait until it comes. */
static void put_row(const struct tn_rst_table *table, struct tn_text_out *out,
                    const struct rst_cell *row, const size_t *widths)
{
    size_t blanks = 0;

    for (size_t i = 0; i < table->columns; i++) {
        if (row[i].length > 0) {
            put_repeated(out, ' ', blanks);
            tn_text_put_escaped(out, row[i].text, row[i].length, TN_ESCAPED_PLAIN);
            blanks = 0;
        }
        blanks += widths[i] - row[i].width + 2;
    }
    tn_text_putc(out, '\n');
}

enum tarn_status tn_rst_table_put(const struct tn_rst_table *table, struct tn_text_out *out)
{
    const size_t rows = tn_rst_table_rows(table);
    size_t widths[COLUMNS_MAX] = {0};

    if (table->failed) {
        return TARN_ERR_HOST_MEMORY;
    }
    for (size_t i = 0; i < table->columns; i++) {
        widths[i] = row_at(table, 0)[i].width + HEAD_PADDING;
        for (size_t row = 1; row < rows; row++) {
            const size_t width = row_at(table, row)[i].width;

            widths[i] = width > widths[i] ? width : widths[i];
        }
    }
    put_line(table, out, widths);
    for (size_t row = 0; row < rows; row++) {
        put_row(table, out, row_at(table, row), widths);
        if (row == 0) {
            put_line(table, out, widths);
        }
    }
    put_line(table, out, widths);
    return TARN_OK;
}
