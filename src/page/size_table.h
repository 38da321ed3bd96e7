/* SPDX-License-Identifier: MIT */
/*
 * Numbers for sizes, of which a trace has few different ones, in their order, so that what is
 * similar has similar numbers: first those of the allocations and segments of each source are
 * noted, then they are sorted. Only then numbers are available.
 *
 * Owns its table; remembers that host memory was missing. Guarded by its owner. Cost: O(1)
 * expected.
 */
#ifndef TN_PAGE_SIZE_TABLE_H
#define TN_PAGE_SIZE_TABLE_H

#include "analysis/trace_source.h"
#include "base/map.h"
#include "page/column.h"

struct tn_size_table {
    struct tn_map numbers;   /* by size */
    struct tn_column column; /* steps from one size to the next */
    uint64_t last;           /* in the column */
    bool failed;
};

void tn_size_table_init(struct tn_size_table *table);
void tn_size_table_fini(struct tn_size_table *table);

/* Notes the sizes of entries from number `first` on. */
void tn_size_table_note(struct tn_size_table *table, const struct tn_trace_source *source,
                        uint64_t first);
void tn_size_table_sort(struct tn_size_table *table);

/* The number of a size, a new one if it has none. */
uint64_t tn_size_table_get(struct tn_size_table *table, uint64_t size);

#endif
