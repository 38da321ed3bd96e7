/* SPDX-License-Identifier: MIT */
#include "page/pool_stream_table.h"

#include <string.h>

void tn_pool_stream_table_init(struct tn_pool_stream_table *table)
{
    *table = (struct tn_pool_stream_table){.failed = false};
    tn_vec_init(&table->rows, sizeof(struct tn_pool_stream_row));
    tn_id_table_init(&table->ids, &table->budget);
}

void tn_pool_stream_table_fini(struct tn_pool_stream_table *table)
{
    tn_vec_fini(&table->rows);
    tn_id_table_fini(&table->ids);
}

static bool row_equal(const void *owner, uint32_t id, const void *key)
{
    const struct tn_pool_stream_table *table = owner;

    return memcmp((const struct tn_pool_stream_row *)table->rows.items + id, key,
                  sizeof(struct tn_pool_stream_row)) == 0;
}

uint32_t tn_pool_stream_table_get(struct tn_pool_stream_table *table, uint64_t stream,
                                  struct tn_pool_id pool)
{
    const struct tn_pool_stream_row key = {stream, pool};
    const uint32_t hash = tn_hash_bytes(&key, sizeof key);
    uint32_t id;

    if (tn_id_table_find(&table->ids, hash, row_equal, table, &key, &id)) {
        return id;
    }
    if (!tn_vec_append(&table->rows, &key, 1) ||
        !tn_id_table_add(&table->ids, hash, (uint32_t)table->rows.count - 1)) {
        table->failed = true;
        return 0;
    }
    return (uint32_t)table->rows.count - 1;
}
