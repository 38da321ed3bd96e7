/* SPDX-License-Identifier: MIT */
/* The values of a row by column, for those who write them. */
#ifndef TN_RENDER_ROW_H
#define TN_RENDER_ROW_H

#include "render/row_table.h"

struct tn_numbers {
    const uint64_t *items;
    size_t count;
};

static inline const void *tn_row_member(const void *row, size_t at)
{
    return (const char *)row + at;
}

static inline uint64_t tn_row_number(const void *row, size_t at)
{
    return *(const uint64_t *)tn_row_member(row, at);
}

const char *tn_row_text(const void *row, const struct tn_row_column *column);
struct tn_numbers tn_row_numbers(const void *row, const struct tn_row_column *column);
const struct tarn_group *tn_row_group(const struct tn_row_column *column, const void *row);

/* Its name in JSON and CSV; NULL: it is in text alone. */
const char *tn_row_key(enum tarn_grouping by, const struct tn_row_column *column);

/* Whether rows of that kind have it, and this row does. */
bool tn_row_has(const struct tn_row_column *column, int in, const void *row);

/* As a member of the open object, or of all columns those that the row has. */
void tn_row_put_member(struct tn_json_text *json, const struct tn_row_column *column,
                       const void *row);
void tn_row_put_members(struct tn_json_text *json, const struct tn_row_column *columns,
                        const void *row, int in);

/* What counts the others. */
const char *tn_table_others_key(const struct tn_document *document,
                                const struct tn_row_table *table);

/* All rows as JSON lines or CSV, and the names of CSV's columns. */
void tn_row_lines_put(struct tn_document *document, const struct tn_row_table *table,
                      const char *path, const struct tn_rows *rows);
void tn_csv_names_put(struct tn_document *document);

#endif
