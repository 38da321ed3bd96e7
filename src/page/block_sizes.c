/* SPDX-License-Identifier: MIT */
#include "page/block_sizes.h"

bool tn_block_sizes_init(struct tn_block_sizes *sizes, const struct tn_trace_source *source)
{
    tn_column_init(&sizes->column);
    sizes->last = 0;
    return tn_block_extents_init(&sizes->extents, source);
}

void tn_block_sizes_fini(struct tn_block_sizes *sizes)
{
    tn_column_fini(&sizes->column);
    tn_block_extents_fini(&sizes->extents);
}

void tn_block_sizes_add(struct tn_block_sizes *sizes, uint64_t lifetime, uint64_t start,
                        uint64_t address, uint64_t requested)
{
    const uint64_t size = tn_block_extent_of(&sizes->extents, start, address, requested);

    if (size != tn_split_rounded(&sizes->extents.rule, requested)) {
        tn_column_put_varint(&sizes->column, lifetime - sizes->last);
        tn_column_put_varint(&sizes->column, size);
        sizes->last = lifetime;
    }
}
