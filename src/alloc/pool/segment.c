/* SPDX-License-Identifier: MIT */
#include "alloc/pool/segment.h"

#include "alloc/pool/heap.h"
#include "base/host_mem.h"
#include "base/probe.h"

static struct tn_segment *segment_from_node(struct tn_tree_node *node)
{
    return node ? TN_TREE_ENTRY(node, struct tn_segment, node) : NULL;
}

struct tn_segment *tn_segment_find(const struct tn_heap *heap, uint64_t address)
{
    return tn_segment_map_find(&heap->segments, address);
}

struct tn_segment *tn_segment_first(const struct tn_heap *heap)
{
    return segment_from_node(tn_tree_first(&heap->segments.by_address));
}

struct tn_segment *tn_segment_next(const struct tn_segment *segment)
{
    return segment_from_node(tn_tree_next(&segment->node));
}

static void segment_count_alloc(struct tn_heap *heap, const struct tn_pool *pool, uint64_t size)
{
    tn_heap_count_reserved(heap, pool, (int64_t)size);
    tn_counter_increase(&heap->shard.counters.segments, tn_counter_pool(pool->is_small), 1);
    if (size >= heap->config.max_split_size) {
        tn_stat_increase(&heap->shard.counters.totals.oversize_segments, 1);
    }
    heap->shard.counters.totals.num_device_alloc++;
}

enum tarn_status tn_segment_prepare(struct tn_heap *heap, struct tn_new_segment *fresh,
                                    struct tarn_error *error)
{
    *fresh = (struct tn_new_segment){.segment = tn_host_alloc_zero(sizeof *fresh->segment),
                                     .block = tn_block_create(&heap->heads)};
    heap->nodes_in_flight += fresh->block != NULL;
    if (fresh->segment && fresh->block) {
        return TARN_OK;
    }
    tn_segment_discard(heap, fresh);
    return tn_fail_memory(error);
}

void tn_segment_discard(struct tn_heap *heap, struct tn_new_segment *fresh)
{
    if (fresh->block) {
        heap->nodes_in_flight--;
        tn_block_destroy(fresh->block);
    }
    tn_host_free(fresh->segment, sizeof *fresh->segment);
}

struct tn_block *tn_segment_add(struct tn_heap *heap, const struct tn_new_segment *fresh,
                                struct tn_free_set *set, uint64_t address, uint64_t size,
                                uint64_t stack)
{
    struct tn_segment *segment = fresh->segment;
    struct tn_block *block = fresh->block;

    heap->nodes_in_flight--;
    block->address = address;
    block->size = size;
    block->set = set;
    block->mapped = true;
    segment->address = address;
    segment->size = size;
    segment->first = block;
    segment->stack = tn_heap_keep_stack(heap, stack);
    tn_heap_add_segment(heap, segment);
    if (set->pool->owner) {
        set->pool->owner->segment_count++;
    }
    segment_count_alloc(heap, set->pool, size);
    tn_heap_emit(heap, TARN_ACTION_SEGMENT_ALLOC, address, size, set->stream, set->pool, stack);
    TN_PROBE4(map, address, heap->device->ordinal, size, set->stream);
    return block;
}

static void segment_count_release(struct tn_heap *heap, const struct tn_pool *pool, uint64_t size)
{
    tn_heap_count_reserved(heap, pool, -(int64_t)size);
    tn_counter_decrease(&heap->shard.counters.segments, tn_counter_pool(pool->is_small), 1);
    if (size >= heap->config.max_split_size) {
        tn_stat_decrease(&heap->shard.counters.totals.oversize_segments, 1);
    }
    heap->shard.counters.totals.num_device_free++;
}

enum tarn_status tn_segment_give_back(struct tn_heap *heap, const struct tn_pool *pool,
                                      uint64_t address)
{
    const struct tn_private_pool *owner = pool->owner;

    if (!tn_private_pool_has_source(owner)) {
        return heap->device->ops->free(heap->device, address);
    }
    owner->source.free(owner->source.context, address);
    return TARN_OK;
}

enum tarn_status tn_segment_release(struct tn_heap *heap, struct tn_block *block, uint64_t stack,
                                    struct tarn_error *error)
{
    struct tn_segment *segment = tn_segment_find(heap, block->address);
    struct tn_pool *pool = block->set->pool;
    const uint64_t used_stack = stack ? stack : segment->stack;

    tn_assert(tn_block_is_idle(block) && !tn_block_is_split(block) && !block->expandable);
    tn_assert(segment->first == block && segment->size == block->size);
    /* Before the device call, as in PyTorch: whoever registered the memory elsewhere needs the
     * event first. */
    tn_heap_emit(heap, TARN_ACTION_SEGMENT_FREE, block->address, block->size, block->set->stream,
                 pool, used_stack);
    const enum tarn_status st = tn_segment_give_back(heap, pool, block->address);

    if (st) { /* it is still ours: take the event back */
        tn_heap_emit(heap, TARN_ACTION_SEGMENT_ALLOC, block->address, block->size,
                     block->set->stream, pool, segment->stack);
        return tn_heap_device_failed(heap, st, "freeing a segment", error);
    }
    TN_PROBE4(unmap, block->address, heap->device->ordinal, block->size, block->set->stream);
    segment_count_release(heap, pool, block->size);
    if (pool->owner) {
        pool->owner->segment_count--;
    }
    tn_pool_remove(block);
    tn_segment_map_remove(&heap->segments, segment);
    tn_heap_drop_stack(heap, segment->stack);
    tn_block_destroy(block);
    tn_host_free(segment, sizeof *segment);
    return TARN_OK;
}
