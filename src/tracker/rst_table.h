/* SPDX-License-Identifier: MIT */
/*
 * A table as python-tabulate writes it with tablefmt="rst": left-aligned columns between lines of
 * equal signs. The first row is the head. A column is as wide as its longest cell, and two wider
 * than its head.
 *
 * Owns copies of its cells; a cell that found no host memory is noticed by tn_rst_table_put.
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

/* Stays where it is until fini. */
void tn_rst_table_init(struct tn_rst_table *table, size_t columns);
void tn_rst_table_fini(struct tn_rst_table *table);

/* The next cell, row by row. */
void tn_rst_table_add(struct tn_rst_table *table, const char *text);

/* Rows that were begun, the head among them. */
size_t tn_rst_table_rows(const struct tn_rst_table *table);

/* TARN_ERR_HOST_MEMORY when a cell is missing. */
enum tarn_status tn_rst_table_put(const struct tn_rst_table *table,
                                  struct tn_text_out *out) TN_MUST_CHECK;

#endif
