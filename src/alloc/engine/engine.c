/* SPDX-License-Identifier: MIT */
#include "alloc/engine/engine.h"

#include "alloc/engine/plain_memory.h"

#include <stdatomic.h>

void tn_engine_settle_lanes(struct tn_engine *engine)
{
    for (uint32_t i = 0; i < engine->lanes.count; i++) {
        tn_engine_settle_trail(engine, &engine->lanes.lane[i]->trail);
    }
}

void tn_engine_close_lanes(struct tn_engine *engine)
{
    for (uint32_t i = 0; i < engine->lanes.count; i++) {
        tn_engine_forget_trail(engine, &engine->lanes.lane[i]->trail);
    }
    tn_lanes_close(&engine->lanes);
}

bool tn_engine_add_spares(struct tn_engine *engine, uint32_t count)
{
    while (engine->spare_count < count) {
        struct tn_block *node = tn_block_create(&engine->slab);

        if (!node) {
            return false;
        }
        node->next = engine->spares;
        engine->spares = node;
        engine->spare_count++;
    }
    return true;
}

/* What a free is made of is inline here, where one function does it all, and has a function below
 * for who needs a part of it: apart, replays take a twentieth longer. */

static inline void file(struct tn_engine *engine, struct tn_block *block)
{
    tn_assert(tn_block_is_idle(block) && block->mapped && block->filed == TN_FILED_OLD);
    block->u.gc_base = block->set->pool->find_count;
    if (tn_unlikely(!tn_free_set_insert(block->set, block))) {
        block->filed = TN_FILED_NOWHERE;
        block->u.unfiled_next = engine->unfiled;
        engine->unfiled = block;
    }
}

void tn_engine_file(struct tn_engine *engine, struct tn_block *block)
{
    file(engine, block);
}

static TN_COLD void engine_drop_unfiled(struct tn_engine *engine, struct tn_block *block)
{
    struct tn_block **link = &engine->unfiled;

    while (*link != block) {
        link = &(*link)->u.unfiled_next;
    }
    *link = block->u.unfiled_next;
    block->filed = TN_FILED_OLD;
}

/* A block that is not young. */
static TN_NOINLINE void unfile_old(struct tn_engine *engine, struct tn_block *block)
{
    if (block->filed == TN_FILED_NOWHERE) {
        engine_drop_unfiled(engine, block);
    } else if (block->mapped) {
        tn_free_set_remove_old(block->set, block);
    } else {
        tn_free_set_remove_unmapped(block->set, block);
    }
}

static inline void unfile(struct tn_engine *engine, struct tn_block *block)
{
    if (tn_likely(tn_block_is_young(block))) {
        tn_free_set_remove(block->set, block);
    } else {
        unfile_old(engine, block);
    }
}

void tn_engine_unfile(struct tn_engine *engine, struct tn_block *block)
{
    unfile(engine, block);
}

void tn_engine_file_pending(struct tn_engine *engine)
{
    struct tn_block *list = engine->unfiled;

    engine->unfiled = NULL;
    while (list) {
        struct tn_block *block = list;

        list = block->u.unfiled_next;
        block->filed = TN_FILED_OLD;
        tn_engine_file(engine, block);
    }
}

static inline bool blocks_can_merge(const struct tn_block *block, const struct tn_block *neighbour)
{
    return neighbour && tn_block_is_idle(neighbour) && neighbour->mapped == block->mapped;
}

enum {
    SPARES_KEPT = 16 /* for the next splits, sooner than in the slab */
};

static inline void engine_drop_node(struct tn_engine *engine, struct tn_block *node)
{
    if (tn_likely(engine->spare_count < SPARES_KEPT)) {
        node->next = engine->spares;
        engine->spares = node;
        engine->spare_count++;
    } else {
        tn_block_destroy(node);
    }
}

static inline struct tn_block *merge(struct tn_engine *engine, struct tn_block *block,
                                     uint32_t *merged_out, uint64_t *merged_bytes_out)
{
    struct tn_block *below = block->prev;
    struct tn_block *above = block->next;

    *merged_out = 0;
    *merged_bytes_out = 0;
    if (blocks_can_merge(block, above)) {
        unfile(engine, above);
        *merged_out += 1;
        *merged_bytes_out += above->size;
        tn_block_absorb_next(block);
        engine_drop_node(engine, above);
    }
    if (blocks_can_merge(block, below)) {
        unfile(engine, below);
        *merged_out += 1;
        *merged_bytes_out += below->size;
        below->requested_size = block->requested_size;
        tn_block_absorb_next(below);
        engine_drop_node(engine, block);
        block = below;
    }
    return block;
}

struct tn_block *tn_engine_merge(struct tn_engine *engine, struct tn_block *block,
                                 uint32_t *merged_out, uint64_t *merged_bytes_out)
{
    return merge(engine, block, merged_out, merged_bytes_out);
}

static inline struct tn_split_change make_reusable(struct tn_engine *engine, struct tn_block *block)
{
    struct tn_split_change change = {0};
    uint32_t merged;
    uint64_t merged_bytes;

    tn_assert(tn_block_is_idle(block));
    tn_engine_drop_stack(engine, block->u.stack);
    block->u.stack = 0;
    block = merge(engine, block, &merged, &merged_bytes);
    file(engine, block);
    if (block->expandable) {
        return change;
    }
    const bool is_part = tn_block_is_split(block);

    change.blocks = (int32_t)is_part - (int32_t)merged;
    change.bytes = (is_part ? (int64_t)block->size : 0) - (int64_t)merged_bytes;
    return change;
}

struct tn_split_change tn_engine_reuse(struct tn_engine *engine, struct tn_block *block)
{
    return make_reusable(engine, block);
}

void tn_engine_finish_free(struct tn_engine *engine, struct tn_block *block)
{
    const unsigned pool = tn_counter_pool(block->set->pool->is_small);
    const uint64_t requested = block->requested_size;
    const struct tn_split_change change = make_reusable(engine, block);

    tn_counter_change(&engine->counters.split, pool, change.blocks);
    tn_counter_change(&engine->counters.split_bytes, pool, change.bytes);
    tn_counter_decrease(&engine->counters.requested, pool, requested);
}

void tn_engine_complete_free(struct tn_engine *engine, struct tn_block *block, uint64_t stack)
{
    tn_counters_end_wait(&engine->counters, tn_counter_pool(block->set->pool->is_small),
                         block->size);
    tn_engine_emit(engine, TARN_ACTION_FREE_COMPLETED, block->address, block->requested_size,
                   block->set->stream, block->set->pool, stack ? stack : block->u.stack);
    tn_engine_finish_free(engine, block);
}

enum tarn_status tn_engine_device_failed(const struct tn_engine *engine, enum tarn_status status,
                                         const char *what, struct tarn_error *error)
{
    return tn_device_failed(engine->device, status, what, error);
}
