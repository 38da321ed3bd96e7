/* SPDX-License-Identifier: MIT */
/*
 * Numbers for the pairs of pool and stream that blocks and segments are in, of which a trace has
 * few different ones.
 *
 * Owns its table; remembers that host memory was missing. Guarded by its owner. Cost: O(1)
 * expected.
 */
#ifndef TN_PAGE_POOL_STREAM_TABLE_H
#define TN_PAGE_POOL_STREAM_TABLE_H

#include "base/id_table.h"
#include "base/vec.h"
#include "snapshot/model.h"

struct tn_pool_stream_row {
    uint64_t stream;
    struct tn_pool_id pool;
};

struct tn_pool_stream_table {
    struct tn_budget budget; /* without a limit */
    struct tn_vec rows;      /* struct tn_pool_stream_row */
    struct tn_id_table ids;
    bool failed;
};

void tn_pool_stream_table_init(struct tn_pool_stream_table *table);
void tn_pool_stream_table_fini(struct tn_pool_stream_table *table);

/* The number of a pair, a new one if it has none. */
uint32_t tn_pool_stream_table_get(struct tn_pool_stream_table *table, uint64_t stream,
                                  struct tn_pool_id pool);

#endif
