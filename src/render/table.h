/* SPDX-License-Identifier: MIT */
/*
 * A report names the columns of its tables, and they are written here: as text, as JSON, as JSON
 * lines and as CSV. A column is a member of the row's struct. Rows come with the sum of those that
 * are not shown ("others") and the total.
 *
 * A document is one report in one format. In text and JSON a report writes more than its tables:
 * sentences with `text`, members with `json`. JSON lines and CSV have rows only, each with its
 * device, its table, and whether it is a row, the others or the total. In CSV all tables of the
 * document share one line of names; a stack is one cell, outermost frame first, joined by ';'.
 */
#ifndef TN_RENDER_TABLE_H
#define TN_RENDER_TABLE_H

#include "render/row_table.h"

/* `tables` are all tables that tn_table_put may get, and end with NULL: CSV begins with the names
 * of their columns. */
void tn_document_begin(struct tn_document *document, const struct tarn_report_options *options,
                       const char *schema, const struct tn_row_table *const *tables,
                       const struct tarn_writer *writer);
enum tarn_status tn_document_end(struct tn_document *document,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* `path` is the name of the table in the document, "requested_peak.groups"; in JSON it is a member
 * with its last part, followed by "others" and "total". */
void tn_table_put(struct tn_document *document, const struct tn_row_table *table, const char *path,
                  const struct tn_rows *rows);

/* One more row of the table above, in text alone. */
void tn_table_put_row(struct tn_document *document, const struct tn_row_table *table,
                      const struct tn_rows *rows, const void *row, const char *label);

/* One struct as an object in JSON alone; `key` NULL in arrays. */
void tn_object_put(struct tn_json_text *json, const char *key, const struct tn_row_table *table,
                   const void *row, int in);

/* Its columns as members of the open object. */
void tn_members_put(struct tn_json_text *json, const struct tn_row_table *table, const void *row,
                    int in);

/* Part of all in percent, 0 of nothing. */
static inline double tn_percent(uint64_t part, uint64_t all)
{
    return all > 0 ? (double)part / (double)all * 100 : 0.0;
}

/* "+1.50 KiB", flush right in `width`. */
void tn_change_put(struct tn_text_out *out, int width, double change);

#endif
