/* SPDX-License-Identifier: MIT */
#include "export/export_table.h"

#include "base/assertion.h"

void tn_row_cell(struct tn_row *row, struct tn_cell cell)
{
    tn_assert(row->count < row->table->column_count);
    row->cells[row->count++] = cell;
}

void tn_row_none(struct tn_row *row)
{
    tn_row_cell(row, (struct tn_cell){.kind = TN_CELL_NONE});
}

void tn_row_number(struct tn_row *row, uint64_t number)
{
    tn_row_cell(row, (struct tn_cell){.kind = TN_CELL_UNSIGNED, .value = {.number = number}});
}

void tn_row_signed(struct tn_row *row, int64_t number)
{
    tn_row_cell(row, (struct tn_cell){.kind = TN_CELL_SIGNED, .value = {.signed_number = number}});
}

void tn_row_word(struct tn_row *row, const char *word)
{
    tn_row_cell(row, (struct tn_cell){.kind = TN_CELL_WORD, .value = {.word = word}});
}

bool tn_table_begin(struct tn_table_sink *sink, const struct tn_table *table)
{
    return !sink->table || sink->table(sink, table);
}

bool tn_row_send(struct tn_table_sink *sink, const struct tn_row *row)
{
    tn_assert(row->count == row->table->column_count);
    return sink->row(sink, row->table, row->cells);
}
