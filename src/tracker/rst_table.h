/* SPDX-License-Identifier: MIT */
/*
 * A table as python-tabulate writes it with tablefmt="rst": left-aligned columns between lines of
 * equal signs. The first row is the header. A column is as wide as its longest cell, and at least
 * two wider than its header.
 *
 * Owns copies of its cells; tn_rst_table_put reports cells that could not be allocated.
 */
#ifndef TN_TRACKER_RST_TABLE_H
#define TN_TRACKER_RST_TABLE_H

#include "base/arena.h"
#include "base/text_out.h"
#include "base/vec.h"

struct tn_rst_table {
    struct tn_budget budget;
    struct tn_arena arena;
    struct tn_vec cells; /* of struct rst_cell, row by row */
    size_t columns;
    bool failed;
};

/* Must not move until fini. */
void tn_rst_table_init(struct tn_rst_table *table, size_t columns);
void tn_rst_table_fini(struct tn_rst_table *table);

/* Appends a cell, row by row. */
void tn_rst_table_add(struct tn_rst_table *table, const char *text);

/* Number of rows, including the header and a partial row. */
size_t tn_rst_table_rows(const struct tn_rst_table *table);

/* TARN_ERR_HOST_MEMORY when a cell is missing. */
enum tarn_status tn_rst_table_put(const struct tn_rst_table *table,
                                  struct tn_text_out *out) TN_MUST_CHECK;

#endif
