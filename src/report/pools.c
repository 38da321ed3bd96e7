/* SPDX-License-Identifier: MIT */
#include "report/pools.h"

struct tarn_pool_row tn_pool_row_of(const struct tn_layout_row *row)
{
    return (struct tarn_pool_row){.pool = {row->pool.id[0], row->pool.id[1]},
                                  .stream = row->stream,
                                  .size_class = row->is_large ? "large" : "small",
                                  .reserved = row->reserved,
                                  .used = row->used,
                                  .by_settings = row->by_settings,
                                  .waiting = row->waiting,
                                  .slack = row->slack,
                                  .free = row->free,
                                  .largest_free = row->largest_free,
                                  .free_pieces = row->free_runs,
                                  .free_segments = row->whole,
                                  .releasable = row->releasable,
                                  .stuck = row->free - row->releasable,
                                  .largest_stuck = row->largest_stuck,
                                  .scattered = row->free - row->releasable - row->largest_stuck,
                                  .stuck_pieces = row->stuck_runs};
}

const struct tarn_pool_row *tn_pool_rows_make(struct tn_result *result,
                                              const struct tn_layout *layout)
{
    const struct tn_layout_row *from = layout->rows.items;
    struct tarn_pool_row *rows = tn_arena_alloc_array(tn_result_arena(result), layout->rows.count,
                                                      sizeof(struct tarn_pool_row));

    for (size_t i = 0; rows && i < layout->rows.count; i++) {
        rows[i] = tn_pool_row_of(&from[i]);
    }
    return rows;
}
