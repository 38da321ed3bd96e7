/* SPDX-License-Identifier: MIT */
#include "alloc/pool/segment.h"

#include "alloc/engine/engine.h"
#include "base/host_mem.h"

static const struct tn_segment *segment_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, const struct tn_segment, node);
}

static int segment_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(segment_of(a)->address, segment_of(b)->address);
}

void tn_segments_init(struct tn_tree *segments)
{
    tn_tree_init(segments, segment_compare, NULL);
}

static struct tn_segment *segment_from_node(struct tn_tree_node *node)
{
    return node ? TN_TREE_ENTRY(node, struct tn_segment, node) : NULL;
}

struct tn_segment *tn_segment_find(const struct tn_engine *engine, uint64_t address)
{
    const struct tn_segment key = {.address = address};
    struct tn_segment *found =
        segment_from_node(tn_tree_find_at_most(&engine->segments, &key.node));

    return found && address - found->address < found->size ? found : NULL;
}

struct tn_segment *tn_segment_first(const struct tn_engine *engine)
{
    return segment_from_node(tn_tree_first(&engine->segments));
}

struct tn_segment *tn_segment_next(const struct tn_segment *segment)
{
    return segment_from_node(tn_tree_next(&segment->node));
}

/* The device call, without the engine's lock if the settings say so: other threads may then change
 * anything but the pool, which is pinned. */
static enum tarn_status segment_device_alloc(struct tn_engine *engine, struct tn_free_set *set,
                                             uint64_t size, uint64_t *address_out)
{
    const bool unlock = engine->config.release_lock_on_device_alloc;
    struct tn_private_pool *owner = set->pool->owner;
    enum tarn_status st;

    if (unlock) {
        if (owner) {
            owner->pins++;
        }
        engine->nodes_in_flight++;
        tn_engine_unlock(engine);
    }
    st = engine->device->ops->alloc(engine->device, size, address_out);
    if (unlock) {
        tn_engine_lock(engine);
        engine->nodes_in_flight--;
        if (owner) {
            owner->pins--;
        }
    }
    return st;
}

static void segment_count_alloc(struct tn_engine *engine, bool small, uint64_t size)
{
    engine->reserved += size;
    tn_counter_increase(&engine->counters.segments, tn_counter_pool(small), 1);
    tn_counter_increase(&engine->counters.reserved, tn_counter_pool(small), size);
    if (size >= engine->config.max_split_size) {
        tn_stat_increase(&engine->counters.plain.oversize_segments, 1);
    }
    engine->counters.plain.num_device_alloc++;
}

enum tarn_status tn_segment_alloc(struct tn_engine *engine, struct tn_free_set *set, uint64_t size,
                                  uint64_t stack, struct tn_block **block_out,
                                  struct tarn_error *error)
{
    struct tn_segment *segment = tn_host_alloc_zero(sizeof *segment);
    struct tn_block *block = tn_block_create(&engine->heads);
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t address = 0;

    if (!segment || !block) {
        (void)tn_fail(error, st, "no host memory for a segment");
        goto out;
    }
    st = segment_device_alloc(engine, set, size, &address);
    if (st) {
        (void)tn_engine_device_failed(engine, st, "allocating memory", error);
        goto out;
    }
    block->address = address;
    block->size = size;
    block->set = set;
    block->mapped = true;
    segment->address = address;
    segment->size = size;
    segment->first = block;
    segment->stack = tn_engine_keep_stack(engine, stack);
    tn_tree_insert(&engine->segments, &segment->node);
    if (set->pool->owner) {
        set->pool->owner->segment_count++;
    }
    segment_count_alloc(engine, set->pool->is_small, size);
    tn_engine_emit(engine, TARN_ACTION_SEGMENT_ALLOC, address, size, set->stream, set->pool, stack);
    *block_out = block;
    return TARN_OK;
out:
    if (block) {
        tn_block_destroy(block);
    }
    tn_host_free(segment, sizeof *segment);
    return st;
}

static void segment_count_release(struct tn_engine *engine, bool small, uint64_t size)
{
    engine->reserved -= size;
    tn_counter_decrease(&engine->counters.segments, tn_counter_pool(small), 1);
    tn_counter_decrease(&engine->counters.reserved, tn_counter_pool(small), size);
    if (size >= engine->config.max_split_size) {
        tn_stat_decrease(&engine->counters.plain.oversize_segments, 1);
    }
    engine->counters.plain.num_device_free++;
}

enum tarn_status tn_segment_release(struct tn_engine *engine, struct tn_block *block,
                                    uint64_t stack, struct tarn_error *error)
{
    struct tn_segment *segment = tn_segment_find(engine, block->address);
    struct tn_pool *pool = block->set->pool;
    const uint64_t used_stack = stack ? stack : segment->stack;

    tn_assert(tn_block_is_idle(block) && !tn_block_is_split(block) && !block->expandable);
    tn_assert(segment->first == block && segment->size == block->size);
    /* Before the device call, as in PyTorch: who registered the memory elsewhere must hear of it.
     * */
    tn_engine_emit(engine, TARN_ACTION_SEGMENT_FREE, block->address, block->size,
                   block->set->stream, pool, used_stack);
    const enum tarn_status st = engine->device->ops->free(engine->device, block->address);

    if (st) { /* it is still ours: take the event back */
        tn_engine_emit(engine, TARN_ACTION_SEGMENT_ALLOC, block->address, block->size,
                       block->set->stream, pool, segment->stack);
        return tn_engine_device_failed(engine, st, "freeing a segment", error);
    }
    segment_count_release(engine, pool->is_small, block->size);
    if (pool->owner) {
        pool->owner->segment_count--;
    }
    tn_engine_unfile(engine, block);
    tn_tree_remove(&engine->segments, &segment->node);
    tn_engine_drop_stack(engine, segment->stack);
    tn_block_destroy(block);
    tn_host_free(segment, sizeof *segment);
    return TARN_OK;
}
