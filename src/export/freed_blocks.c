/* SPDX-License-Identifier: MIT */
#include "export/freed_blocks.h"

#include "analysis/lifetime_walk.h"

struct tn_freed_block {
    bool is_allocated; /* in the part */
    bool is_freed;
};

void tn_freed_blocks_init(struct tn_freed_blocks *freed)
{
    tn_vec_init(&freed->of_entry, sizeof(uint64_t));
    tn_vec_init(&freed->blocks, sizeof(struct tn_freed_block));
}

void tn_freed_blocks_fini(struct tn_freed_blocks *freed)
{
    tn_vec_fini(&freed->of_entry);
    tn_vec_fini(&freed->blocks);
}

static struct tn_freed_block *block_at(const struct tn_freed_blocks *freed, uint64_t number)
{
    return &((struct tn_freed_block *)freed->blocks.items)[number];
}

static bool entry_note(struct tn_freed_blocks *freed, const struct tn_trace_entry *entry,
                       const struct tn_lifetime_step *step)
{
    const struct tn_freed_block block = {.is_allocated = entry->action == TN_TRACE_ALLOC};

    if ((step->is_new && !tn_vec_add(&freed->blocks, &block)) ||
        !tn_vec_add(&freed->of_entry, &step->lifetime)) {
        return false;
    }
    if (step->lifetime != TN_LIFETIME_NONE && entry->action == TN_TRACE_FREE_COMPLETED) {
        block_at(freed, step->lifetime)->is_freed = true;
    }
    return true;
}

bool tn_freed_blocks_find(struct tn_freed_blocks *freed, const struct tn_model *model,
                          const struct tn_trace *trace, uint64_t first, uint64_t limit)
{
    struct tn_lifetime_walk walk = {.count = 0};
    struct tn_lifetime_step step;
    bool good = true;

    for (uint64_t i = first; good && i < limit; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(model, trace, i);

        good = tn_lifetime_walk_step(&walk, entry, &step) && entry_note(freed, entry, &step);
    }
    tn_lifetime_walk_fini(&walk);
    return good;
}

bool tn_freed_blocks_have(const struct tn_freed_blocks *freed, uint64_t entry)
{
    const uint64_t number = ((const uint64_t *)freed->of_entry.items)[entry];

    return number != TN_LIFETIME_NONE && block_at(freed, number)->is_allocated &&
           block_at(freed, number)->is_freed;
}
