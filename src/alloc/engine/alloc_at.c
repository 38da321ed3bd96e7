/* SPDX-License-Identifier: MIT */
/*
 * Allocating at a given address: the free block around it instead of the best fit, and no ladder.
 * Declared in native.h.
 */
#include "alloc/engine/core_check.h"
#include "alloc/engine/native.h"
#include "alloc/engine/oom.h"
#include "alloc/pool/best_fit.h"
#include "alloc/pool/segment.h"
#include "base/probe.h"

#include <inttypes.h>

/* The free block that has these bytes and could serve the request, still in its set; NULL if there
 * is none. Cost: the blocks of one segment. */
static struct tn_block *find_around(const struct tn_heap *heap, const struct tn_request *request,
                                    uint64_t address)
{
    const struct tn_segment *segment = tn_segment_find(heap, address);
    struct tn_block *block = segment ? segment->first : NULL;

    while (block && block->address + block->size <= address) {
        block = block->next;
    }
    const bool is_free = block && tn_block_is_idle(block) && block->mapped;

    return is_free && block->set == request->set &&
                   block->address + block->size - address >= request->size
               ? block
               : NULL;
}

/* Whether the settings allow to split the block at the address. */
static bool splits_at(const struct tn_heap *heap, const struct tn_request *request,
                      const struct tn_block *block, uint64_t address)
{
    const struct tn_private_pool *owner = request->pool->owner;

    return block->address == address ||
           (!(owner && owner->no_split) &&
            tn_should_split(block->size, address - block->address, request->pool->is_small,
                            request->expandable, &heap->config));
}

/* Allocates the front of a free block, in no set, as if it had been requested. Returns the rest. */
static struct tn_block *take_front(struct tn_heap *heap, struct tn_block *front, uint64_t size)
{
    (void)tn_heap_mark_allocated(heap, &heap->shard, front, size, size, true, 0);
    tn_pool_remove(front->next);
    return front->next;
}

void tn_native_take_at(struct tn_engine *engine, struct tn_request *request, uint64_t address)
{
    struct tn_heap *heap = &engine->heap;
    struct tn_block *front = NULL;

    if (request->block->address < address) {
        front = request->block;
        request->block = take_front(heap, front, address - front->address);
    }
    (void)tn_heap_mark_allocated(heap, &heap->shard, request->block, request->size,
                                 request->requested, tn_request_splits(heap, request),
                                 request->stack);
    if (front) {
        tn_native_free_surely(engine, front, 0); /* nothing else used it */
    }
}

/* PyTorch's mallocWithAddress (pytorch #178215): allocates what is in front of the address, then at
 * the address, and frees the former. Everything that can fail comes first. */
static enum tarn_status alloc_at_locked(struct tn_engine *engine, struct tn_request *request,
                                        uint64_t address, struct tarn_error *error)
{
    struct tn_heap *heap = &engine->heap;
    const enum tarn_status st = tn_native_begin(engine, request, NULL, error);

    if (st) {
        return st;
    }
    if (!tn_ptr_map_reserve(&heap->shard.map, 2) ||
        !tn_heap_reserve_spares(heap, &heap->shard, 2)) {
        return tn_fail_memory(error);
    }
    request->block = find_around(heap, request, address);
    if (!request->block || !splits_at(heap, request, request->block, address)) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "no free block that %" PRIu64
                       " bytes on this stream may come from has them at 0x%" PRIx64,
                       request->size, address);
    }
    tn_pool_remove(request->block);
    tn_native_take_at(engine, request, address);
    return TARN_OK;
}

enum tarn_status tn_native_alloc_at(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                    tarn_ptr address, struct tarn_error *error)
{
    struct tn_request request = {.requested = size, .stream = stream};
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_STATE);

    tn_engine_lock(engine);
    request.stack = tn_heap_keep_if_received(&engine->heap, stack);
    const enum tarn_status st = size < TN_MAX_REQUEST
                                    ? alloc_at_locked(engine, &request, address, error)
                                    : tn_oom_absurd(error);

    if (st) {
        tn_heap_drop_captured(&engine->heap, request.stack);
    } else {
        tn_heap_end_capture(&engine->heap, request.stack); /* the block has it */
    }
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    TN_PROBE4(malloc, st ? 0 : address, engine->heap.device->ordinal, size, stream);
    return st;
}
