/* SPDX-License-Identifier: MIT */
/*
 * A snapshot or a fleet as tables: rows of cells, sent to whoever writes them down. One description
 * of the tables serves every format.
 *
 * Numbers of a snapshot's stacks are those of the model, 0 is none. Events are numbered within
 * their device, segments and allocations over the file. Stacks of a fleet are numbered by their
 * hash.
 */
#ifndef TN_EXPORT_EXPORT_TABLE_H
#define TN_EXPORT_EXPORT_TABLE_H

#define TN_COLUMN_OF_NUMBER(name)                                                                  \
    {                                                                                              \
        name, TN_COLUMN_NUMBER                                                                     \
    }
#define TN_COLUMN_OF_ADDRESS(name)                                                                 \
    {                                                                                              \
        name, TN_COLUMN_ADDRESS                                                                    \
    }
#define TN_COLUMN_OF_TEXT(name)                                                                    \
    {                                                                                              \
        name, TN_COLUMN_TEXT                                                                       \
    }

#include "export/export_formats.h"

enum tn_column_kind {
    TN_COLUMN_NUMBER,
    TN_COLUMN_REAL,
    TN_COLUMN_ADDRESS, /* and other numbers that are read in hexadecimal digits */
    TN_COLUMN_TEXT,
    TN_COLUMN_FRAME /* the frame that asked; databases join it instead */
};

struct tn_column {
    const char *name;
    enum tn_column_kind kind;
};

enum {
    TN_COLUMNS_MAX = 40,
    TN_ABOUTS_MAX = 8
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
        TN_CELL_REAL,     /* value.real */
        TN_CELL_WORD,     /* value.word: text of ours */
        TN_CELL_TEXT,     /* value.text: text from outside */
        TN_CELL_STRING,   /* value.number: string of the model */
        TN_CELL_FRAME     /* value.number: frame of the model */
    } kind;
    union {
        int64_t signed_number;
        uint64_t number;
        double real;
        const char *word;
        struct tn_string text;
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

/* A row of a database's table `about`. */
struct tn_about {
    const char *key;
    struct tn_cell value;
};

/* What there is to send of a job. */
struct tn_tables {
    enum tarn_export_table first; /* the one of CSV when none is named */
    const char *sql;              /* of a database: indexes and views */

    /* Sends the tables that `options` want. False when the sink stopped it or host memory is
     * missing; *out_of_memory then says which. */
    bool (*send)(const struct tn_export *job, struct tn_table_sink *sink,
                 const struct tarn_export_options *options, bool *out_of_memory);

    /* Returns their number. */
    size_t (*about)(const struct tn_export *job, struct tn_about abouts[TN_ABOUTS_MAX]);
};

/* A row being assembled. */
struct tn_row {
    const struct tn_table *table;
    unsigned count;
    struct tn_cell cells[TN_COLUMNS_MAX];
};

void tn_row_none(struct tn_row *row);
void tn_row_number(struct tn_row *row, uint64_t number);
void tn_row_signed(struct tn_row *row, int64_t number);
void tn_row_word(struct tn_row *row, const char *word);
void tn_row_cell(struct tn_row *row, struct tn_cell cell);

/* False stops. */
bool tn_table_begin(struct tn_table_sink *sink, const struct tn_table *table) TN_MUST_CHECK;
bool tn_row_send(struct tn_table_sink *sink, const struct tn_row *row) TN_MUST_CHECK;

extern const struct tn_tables tn_snapshot_tables;
extern const struct tn_tables tn_fleet_tables;

#endif
