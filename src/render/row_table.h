/* SPDX-License-Identifier: MIT */
/* How a report describes its tables: a column is a member of the row's struct. */
#ifndef TN_RENDER_ROW_TABLE_H
#define TN_RENDER_ROW_TABLE_H

#include "base/json_text.h"
#include "tarn/report.h"

#include <stddef.h>

enum tn_row_kind {
    TN_ROW_END,      /* after the last one */
    TN_ROW_SIZE,     /* uint64_t: bytes */
    TN_ROW_CHANGE,   /* int64_t: bytes */
    TN_ROW_COUNT,    /* uint64_t */
    TN_ROW_SIGNED,   /* int64_t */
    TN_ROW_INT,      /* int */
    TN_ROW_EVENT,    /* uint64_t, or TARN_NONE */
    TN_ROW_REAL,     /* double; text only, one decimal */
    TN_ROW_SHARE,    /* uint64_t; in percent of the total's, in a tree the root's */
    TN_ROW_PERCENT,  /* uint64_t; in percent of the one at `of` */
    TN_ROW_MEAN,     /* uint64_t; divided by the one at `of` */
    TN_ROW_FRACTION, /* uint64_t; "3 of 7", the second one at `of` */
    TN_ROW_ADDRESS,  /* uint64_t */
    TN_ROW_BOOL,
    TN_ROW_CHOICE,  /* an enum: the number of one of `words`; not in text */
    TN_ROW_ANSWER,  /* enum tarn_answer: true, false or null; not in text */
    TN_ROW_WORD,    /* const char *: a word of ours */
    TN_ROW_TEXT,    /* const char *: anybody's text */
    TN_ROW_NUMBERS, /* const uint64_t *, or uint64_t[2] when there is no `of`; `of` is a size_t:
                            how many */
    TN_ROW_FRAMES,  /* struct tarn_group: its frames */
    TN_ROW_GROUP,   /* struct tarn_group: the group of the row. `key` NULL: a member "frames"
                            or "name", else one within an object. Text: the last column */
    TN_ROW_NAME,    /* struct tarn_group: the same in text alone */
    TN_ROW_CHAIN,   /* struct tarn_call, with struct tarn_group at `of`: the same in a tree */
    TN_ROW_ITSELF,  /* struct tarn_call: true, or no member */
    TN_ROW_CALLEES, /* struct tarn_call: how many others, or no member */
    TN_ROW_LABEL    /* text only, the last column: what `put` writes of the row */
};

/* Which rows have a column. */
enum {
    TN_IN_ROWS = 1,
    TN_IN_OTHERS = 2,
    TN_IN_TOTAL = 4,
    TN_IN_SUMS = TN_IN_OTHERS | TN_IN_TOTAL,
    TN_IN_ALL = TN_IN_ROWS | TN_IN_SUMS
};

struct tn_row_column {
    const char *key;     /* of JSON and CSV; NULL: text only, but for groups */
    const char *heading; /* of text; of groups, before that of the grouping; NULL: not in text */
    enum tn_row_kind kind;
    int width; /* in text, but for sizes, which know theirs; below 0: flush left */
    size_t at; /* in the row */
    size_t of;
    int in;        /* 0: TN_IN_ALL; cells of other rows are blank */
    int decimals;  /* of a mean; 0: whole, rounded down */
    bool is_spare; /* left out of text where a line has no room for it */
    const char *const *words;
    void (*put)(struct tn_text_out *out, const void *row);
};

struct tn_row_table {
    const struct tn_row_column
        *columns; /* the last one of text is flush left and as long as it is */
    size_t row_size;
    const struct tn_row_column
        *context;           /* columns of document->context, for JSON lines and CSV; or NULL */
    bool is_tree;           /* there when the options say so */
    bool has_others;        /* rows that are not shown are summed up */
    const char *others_key; /* counts the others; NULL: the grouping's, "stacks" */
};

/* Columns around the numbers of a tree's rows, which have members `group` and `call`. */
#define TN_TREE_FIRST(type)                                                                        \
    {"id", NULL, TN_ROW_COUNT, 0, .at = offsetof(type, call.id)},                                  \
    {                                                                                              \
        "parent", NULL, TN_ROW_EVENT, 0, .at = offsetof(type, call.parent)                         \
    }
#define TN_TREE_LAST(type)                                                                         \
    {NULL, "calls", TN_ROW_CHAIN, 0, .at = offsetof(type, call), .of = offsetof(type, group)},     \
        {"itself", NULL, TN_ROW_ITSELF, 0, .at = offsetof(type, call)},                            \
    {                                                                                              \
        "others", NULL, TN_ROW_CALLEES, 0, .at = offsetof(type, call)                              \
    }

struct tn_rows {
    const void *rows;
    size_t count;
    const void *others;
    uint64_t other_count;
    const void *total;         /* NULL: none */
    const char *first_heading; /* of the first column of text, if it is not the table's */
};

enum {
    TN_TABLE_COLUMNS_MAX = 32 /* more columns than a table has */
};

struct tn_document {
    enum tarn_report_format format;
    enum tarn_grouping by;
    bool has_trees;
    unsigned columns;                 /* of a line of text; 0: no limit */
    int widths[TN_TABLE_COLUMNS_MAX]; /* of the last table's columns; 0: the column's own */
    bool hides_spare;                 /* columns of the last table */
    bool is_utf8;                     /* of a terminal */
    unsigned bar;                     /* characters of its bars behind shares; 0: none */
    bool has_hint;                    /* of category_hint.h */
    struct tn_text_out *text;         /* NULL in other formats */
    struct tn_json_text *json;        /* NULL in other formats */
    const void *context;              /* a struct for the `context` columns of tables */

    struct tn_text_out out;
    struct tn_json_text json_out;
    const struct tn_row_table *const *tables; /* of CSV */
};

#endif
