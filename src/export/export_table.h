/* SPDX-License-Identifier: MIT */
/*
 * A snapshot as tables: rows of cells, sent to whoever writes them down. One description of the
 * tables serves every format.
 *
 * Numbers of stacks are those of the model, 0 is none. Events are numbered within their device,
 * segments and allocations over the file.
 */
#ifndef TN_EXPORT_EXPORT_TABLE_H
#define TN_EXPORT_EXPORT_TABLE_H

#include "snapshot/model.h"
#include "tarn/export.h"

enum tn_column_kind {
    TN_COLUMN_NUMBER,
    TN_COLUMN_ADDRESS,
    TN_COLUMN_TEXT,
    TN_COLUMN_FRAME /* the frame that asked; databases join it instead */
};

struct tn_column {
    const char *name;
    enum tn_column_kind kind;
};

enum {
    TN_COLUMNS_MAX = 20
};

struct tn_table {
    const char *name;
    enum tarn_export_table id;
    unsigned column_count;
    struct tn_column columns[TN_COLUMNS_MAX];
};

struct tn_cell {
    enum {
        TN_CELL_NONE,
        TN_CELL_SIGNED,   /* value.signed_number */
        TN_CELL_UNSIGNED, /* value.number: also addresses */
        TN_CELL_WORD,     /* value.word: text of ours */
        TN_CELL_STRING,   /* value.number: string of the model */
        TN_CELL_FRAME     /* value.number: frame of the model */
    } kind;
    union {
        int64_t signed_number;
        uint64_t number;
        const char *word;
    } value;
};

struct tn_table_sink {
    /* Begins a table; its rows follow. NULL: nothing to do. False stops. */
    bool (*table)(struct tn_table_sink *sink, const struct tn_table *table);
    /* One row, a cell a column. False stops. */
    bool (*row)(struct tn_table_sink *sink, const struct tn_table *table,
                const struct tn_cell *cells);
    const struct tn_model *model;
};

/* Sends the tables that `options` want. False when the sink stopped it or host memory is missing;
 * *out_of_memory then says which. */
bool tn_tables_send(struct tn_table_sink *sink, const struct tarn_export_options *options,
                    bool *out_of_memory) TN_MUST_CHECK;

#endif
