/* SPDX-License-Identifier: MIT */
#include "alloc/pool/heap.h"

enum {
    SPARES_KEPT = 16 /* for the next splits: faster than the slab */
};

void tn_heap_init(struct tn_heap *heap, struct tarn_device *device,
                  const struct tarn_config *config)
{
    *heap = (struct tn_heap){
        .device = device,
        .config = *config,
        .limit = TARN_SIZE_UNLIMITED,
        .shard.spares_kept = SPARES_KEPT,
    };
    tn_counters_init(&heap->shard.counters, config->max_split_size);
    tn_segment_map_init(&heap->segments);
    tn_pool_init(&heap->small, true, NULL, NULL);
    tn_pool_init(&heap->large, false, NULL, NULL);
    tn_heap_apply_order(heap);
    tn_biased_lock_init(&heap->lock, TN_LOCK_ALLOCATOR);
}

void tn_heap_apply_order(struct tn_heap *heap)
{
    const bool is_by_age =
        heap->config.rules == TARN_RULES_2_14 && heap->config.policy == TARN_POLICY_EXACT;
    const struct tn_segment_map *by_age = is_by_age ? &heap->segments : NULL;

    if (by_age == heap->private_pools.by_age) {
        return;
    }
    heap->private_pools.by_age = by_age;
    tn_pool_reorder(&heap->small, by_age);
    tn_pool_reorder(&heap->large, by_age);
    for (struct tn_private_pool *p = heap->private_pools.first; p; p = p->next) {
        tn_pool_reorder(&p->small, by_age);
        tn_pool_reorder(&p->large, by_age);
    }
}

static void heap_pack_segments(struct tn_heap *heap)
{
    tn_segment_map_pack(&heap->segments);
    if (!heap->private_pools.by_age) {
        return;
    }
    tn_pool_rekey(&heap->small);
    tn_pool_rekey(&heap->large);
    for (struct tn_private_pool *p = heap->private_pools.first; p; p = p->next) {
        tn_pool_rekey(&p->small);
        tn_pool_rekey(&p->large);
    }
}

void tn_heap_add_segment(struct tn_heap *heap, struct tn_segment *segment)
{
    if (tn_segment_map_is_full(&heap->segments, segment->size)) {
        heap_pack_segments(heap);
    }
    tn_segment_map_insert(&heap->segments, segment);
}

void tn_heap_fini(struct tn_heap *heap)
{
    tn_assert(atomic_load(&heap->captures) == 0); /* no call is in progress */
    tn_private_pools_fini(&heap->private_pools);
    tn_pool_fini(&heap->small);
    tn_pool_fini(&heap->large);
    while (heap->shard.spares) {
        tn_block_destroy(tn_shard_take_spare(&heap->shard));
    }
    tn_block_slab_fini(&heap->slab);
    tn_block_slab_fini(&heap->heads);
    tn_ptr_map_fini(&heap->shard.map);
    tn_biased_lock_fini(&heap->lock);
}

bool tn_heap_add_spares(struct tn_heap *heap, struct tn_shard *shard, uint32_t count)
{
    while (shard->spare_count < count) {
        struct tn_block *node = tn_block_create(&heap->slab);

        if (!node) {
            return false;
        }
        tn_shard_add_spare(shard, node);
    }
    return true;
}

struct tn_map_entry tn_heap_look_up_slow(struct tn_shard *shard, tarn_ptr ptr)
{
    struct tn_map_entry entry = {0};

    for (; shard && !entry.slot; shard = shard->next) {
        entry = (struct tn_map_entry){.shard = shard, .slot = tn_ptr_map_slot(&shard->map, ptr)};
    }
    return entry;
}

struct tn_block *tn_heap_find(const struct tn_heap *heap, tarn_ptr ptr)
{
    struct tn_block *block = NULL;

    for (const struct tn_shard *s = &heap->shard; s && !block; s = s->next) {
        block = tn_ptr_map_find(&s->map, ptr);
    }
    return block;
}

void tn_heap_complete_free(struct tn_heap *heap, struct tn_block *block, uint64_t stack)
{
    tn_counters_end_wait(&heap->shard.counters, tn_counter_pool(block->set->pool->is_small),
                         block->size);
    tn_heap_emit(heap, TARN_ACTION_FREE_COMPLETED, block->address, block->requested_size,
                 block->set->stream, block->set->pool, stack ? stack : block->u.stack);
    tn_heap_finish_free(heap, &heap->shard, block);
}

void tn_heap_announce_free(struct tn_heap *heap, const struct tn_block *block, bool waits,
                           uint64_t stack)
{
    const uint64_t shown = stack ? stack : block->u.stack;

    if (waits) {
        tn_heap_emit(heap, TARN_ACTION_FREE_REQUESTED, block->address, block->requested_size,
                     block->set->stream, block->set->pool, shown);
    } else {
        tn_heap_emit_free(heap, block->address, block->requested_size, block->set->stream,
                          block->set->pool, shown);
    }
}

enum tarn_status tn_heap_device_failed(const struct tn_heap *heap, enum tarn_status status,
                                       const char *what, struct tarn_error *error)
{
    return tn_device_failed(heap->device, status, what, error);
}
