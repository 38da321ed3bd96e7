/* SPDX-License-Identifier: MIT */
#include "analysis/lifetime_walk.h"

void tn_lifetime_walk_fini(struct tn_lifetime_walk *walk)
{
    tn_map_fini(&walk->live);
    tn_map_fini(&walk->freed);
}

uint64_t tn_lifetime_walk_at(const struct tn_lifetime_walk *walk, uint64_t address)
{
    const uint64_t *lifetime = tn_address_find(&walk->live, address);

    return lifetime ? *lifetime : TN_LIFETIME_NONE;
}

/* There is room: tn_lifetime_walk_step has seen to it. */
static void lifetime_begin(struct tn_lifetime_walk *walk, uint64_t address,
                           struct tn_lifetime_step *step)
{
    uint64_t *old = tn_address_find(&walk->live, address);

    step->lifetime = walk->count++;
    step->is_new = true;
    if (old) {
        step->ended = *old;
        *old = step->lifetime;
    } else {
        tn_map_insert(&walk->live, tn_address_key(address), step->lifetime);
    }
}

static void alloc_step(struct tn_lifetime_walk *walk, uint64_t address,
                       struct tn_lifetime_step *step)
{
    uint64_t *freed = tn_address_find(&walk->freed, address);

    if (freed) {
        tn_map_remove(&walk->freed, freed);
    }
    lifetime_begin(walk, address, step);
}

static void free_step(struct tn_lifetime_walk *walk, const struct tn_trace_entry *entry,
                      struct tn_lifetime_step *step)
{
    const uint64_t key = tn_address_key(entry->address);
    uint64_t *live = tn_map_find(&walk->live, key);

    if (!live && !tn_map_find(&walk->freed, key)) {
        lifetime_begin(walk, entry->address, step);
        live = tn_map_find(&walk->live, key);
    }
    step->lifetime = live ? *live : TN_LIFETIME_NONE;
    if (entry->action == TN_TRACE_FREE_COMPLETED && live) {
        tn_map_remove(&walk->live, live);
        tn_map_insert(&walk->freed, key, TN_LIFETIME_NONE);
    }
}

bool tn_lifetime_walk_step(struct tn_lifetime_walk *walk, const struct tn_trace_entry *entry,
                           struct tn_lifetime_step *step_out)
{
    *step_out = (struct tn_lifetime_step){.lifetime = TN_LIFETIME_NONE, .ended = TN_LIFETIME_NONE};
    if (!tn_map_reserve(&walk->live, 1) || !tn_map_reserve(&walk->freed, 1)) {
        return false;
    }
    if (entry->action == TN_TRACE_ALLOC) {
        alloc_step(walk, entry->address, step_out);
    } else if (entry->action == TN_TRACE_FREE_REQUESTED ||
               entry->action == TN_TRACE_FREE_COMPLETED) {
        free_step(walk, entry, step_out);
    } else if (entry->action == TN_TRACE_ANNOTATE) {
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
