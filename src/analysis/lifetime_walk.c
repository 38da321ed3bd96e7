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

/* A lifetime at an address with that value in the table, NULL: none. False without host memory. */
static bool lifetime_begin(struct tn_lifetime_walk *walk, uint64_t address, uint64_t *value,
                           struct tn_lifetime_step *step)
{
    if (!value && !tn_map_reserve(&walk->blocks, 1)) {
        return false;
    }
    step->lifetime = walk->count++;
    step->is_new = true;
    if (value) {
        *value = step->lifetime;
    } else {
        tn_map_insert(&walk->blocks, tn_address_key(address), step->lifetime);
    }
    return true;
}

static bool alloc_step(struct tn_lifetime_walk *walk, uint64_t address,
                       struct tn_lifetime_step *step)
{
    uint64_t *value = tn_address_find(&walk->blocks, address);

    if (value && !tn_lifetime_is_freed(*value)) {
        step->ended = *value;
    }
    return lifetime_begin(walk, address, value, step);
}

static bool free_step(struct tn_lifetime_walk *walk, const struct tn_trace_entry *entry,
                      struct tn_lifetime_step *step)
{
    uint64_t *value = tn_address_find(&walk->blocks, entry->address);

    if (!value) {
        if (!lifetime_begin(walk, entry->address, NULL, step)) {
            return false;
        }
        value = tn_address_find(&walk->blocks, entry->address);
    } else if (!tn_lifetime_is_freed(*value)) {
        step->lifetime = *value;
    }
    if (entry->action == TN_TRACE_FREE_COMPLETED && !tn_lifetime_is_freed(*value)) {
        *value = TN_LIFETIME_NONE;
    }
    return true;
}

bool tn_lifetime_walk_step(struct tn_lifetime_walk *walk, const struct tn_trace_entry *entry,
                           struct tn_lifetime_step *step_out)
{
    *step_out = (struct tn_lifetime_step){.lifetime = TN_LIFETIME_NONE, .ended = TN_LIFETIME_NONE};
    if (entry->action == TN_TRACE_ALLOC) {
        return alloc_step(walk, entry->address, step_out);
    }
    if (entry->action == TN_TRACE_FREE_REQUESTED || entry->action == TN_TRACE_FREE_COMPLETED) {
        return free_step(walk, entry, step_out);
    }
    if (entry->action == TN_TRACE_ANNOTATE) {
        step_out->lifetime = tn_lifetime_walk_at(walk, entry->address);
    }
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
