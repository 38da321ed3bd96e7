/* SPDX-License-Identifier: MIT */
#include "alloc/engine/engine.h"

#include "alloc/pool/expandable.h"
#include "alloc/pool/segment.h"
#include "base/host_mem.h"

#include <stddef.h>

void tn_engine_apply_config(struct tn_engine *engine, const struct tarn_config *config)
{
    engine->heap.config = *config; /* its fraction applies only at creation */
    if (config->policy == TARN_POLICY_COMPACT) {
        engine->heap.config.expandable_segments = true;
    }
    tn_heap_apply_order(&engine->heap);
}

void tn_engine_apply_fraction(struct tn_engine *engine, double fraction)
{
    /* Truncated as PyTorch truncates it; a fraction of 1 removes the limit. */
    engine->heap.limit = fraction < 1.0
                             ? (uint64_t)(fraction * (double)engine->heap.device->total_memory)
                             : TARN_SIZE_UNLIMITED;
}

/* Whether what makes the heap TN_BUSY_SOME concerns a request on this stream: the stream is routed
 * to a private pool or, if no capture is under way, an event that blocks wait for is done. */
static bool engine_concerns(struct tn_heap *heap, tarn_stream stream)
{
    struct tn_engine *engine =
        (struct tn_engine *)(void *)((char *)heap - offsetof(struct tn_engine, heap));

    if (heap->private_pools.route_count > 0 &&
        tn_private_pool_route(&heap->private_pools, stream)) {
        return true;
    }
    return !tn_heap_is_capturing(heap) && tn_stream_waits_is_any_done(&engine->waits);
}

void tn_engine_init(struct tn_engine *engine, struct tarn_device *device,
                    const struct tarn_config *config)
{
    *engine = (struct tn_engine){.owner = engine->owner};
    tn_heap_init(&engine->heap, device, config);
    engine->waits.heap = &engine->heap;
    engine->soft_limit = TARN_SIZE_UNLIMITED;
    tn_engine_apply_config(engine, config);
    tn_compact_init(&engine->compact, &engine->heap);
    tn_fast_init(&engine->fast, &engine->heap, engine_concerns);
    if (config->memory_fraction_given) {
        tn_engine_apply_fraction(engine, config->memory_fraction);
    }
}

/* Frees every node of the segment and the memory behind it, whatever state its blocks are in. */
static void segment_abandon(struct tn_heap *heap, struct tn_segment *segment)
{
    struct tn_block *block = segment->first;
    const struct tn_pool *pool = block->set->pool;

    while (block) {
        struct tn_block *next = block->next;

        if (tn_block_is_idle(block)) {
            tn_pool_remove(block);
        } else {
            tn_heap_drop_stack(heap, block->u.stack);
        }
        tn_block_destroy(block);
        block = next;
    }
    tn_heap_drop_stack(heap, segment->stack);
    if (segment->expandable) {
        tn_expandable_destroy(heap, segment);
    } else {
        (void)!tn_segment_give_back(heap, pool, segment->address);
    }
    tn_segment_map_remove(&heap->segments, segment);
    tn_host_free(segment, sizeof *segment);
}

void tn_engine_fini(struct tn_engine *engine)
{
    struct tn_segment *segment;

    tn_engine_lock(engine); /* flushes, so that blocks are in the state they show */
    tn_engine_unlock(engine);
    tn_fast_fini(&engine->fast);
    tn_stream_waits_fini(&engine->waits);
    tn_compact_fini(&engine->compact);
    while ((segment = tn_segment_first(&engine->heap)) != NULL) {
        segment_abandon(&engine->heap, segment);
    }
    tn_heap_fini(&engine->heap);
}
