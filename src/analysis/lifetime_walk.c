/* SPDX-License-Identifier: MIT */
#include "analysis/lifetime_walk.h"

void tn_lifetime_walk_fini(struct tn_lifetime_walk *walk)
{
    tn_map_fini(&walk->blocks);
}

uint64_t tn_lifetime_walk_at(const struct tn_lifetime_walk *walk, uint64_t address)
{
    const uint64_t *lifetime = tn_address_find(&walk->blocks, address);

    return lifetime && !tn_lifetime_is_freed(*lifetime) ? *lifetime : TN_LIFETIME_NONE;
}

bool tn_lifetime_walk_add(struct tn_lifetime_walk *walk, uint64_t address, uint64_t value)
{
    if (!tn_map_reserve(&walk->blocks, 1)) {
        return false;
    }
    tn_map_insert(&walk->blocks, tn_address_key(address), value);
    return true;
}

bool tn_lifetime_walk_survivors(const struct tn_lifetime_walk *walk,
                                const struct tn_trace_source *source,
                                bool (*visit)(void *context, const struct tn_model_segment *segment,
                                              const struct tn_model_block *block),
                                void *context)
{
    for (size_t i = 0; !source->model->is_partial && i < source->segment_count; i++) {
        const struct tn_model_segment *segment = &source->segments[i];

        for (size_t k = 0; tn_source_has(source, i) && k < segment->block_count; k++) {
            const struct tn_model_block *block = &segment->blocks[k];

            if (block->state != TN_BLOCK_INACTIVE &&
                tn_lifetime_walk_at(walk, block->address) == TN_LIFETIME_NONE &&
                !visit(context, segment, block)) {
                return false;
            }
        }
    }
    return true;
}
