/* SPDX-License-Identifier: MIT */
/*
 * Serving a call from the free blocks, with an entry in an undo log: what a call that takes the
 * heap's lock and one that takes a stream cache's have in common. `shard` is the heap's or the
 * cache's, `log` the stream's, flushed and counted.
 */
#ifndef TN_ALLOC_FAST_SERVE_H
#define TN_ALLOC_FAST_SERVE_H

#include "alloc/fast/undo_log.h"
#include "alloc/pool/best_fit.h"

/* An allocation from a free block gets an entry in its stream's log. */
static TN_INLINE void tn_serve_add_entry(struct tn_undo_log *log, const struct tn_request *request,
                                         const struct tn_private_pool *owner, bool split,
                                         const struct tn_split_change *change)
{
    struct tn_undo_entry *entry = tn_undo_log_add(log);
    struct tn_block *block = request->block;

    entry->block = block;
    entry->address = block->address;
    entry->requested = request->requested;
    entry->key = tn_undo_key(request->requested, owner);
    entry->stream = request->stream;
    entry->stale = split ? &block->next->requested_size : &log->unused;
    entry->split_bytes = change->bytes;
    entry->split_blocks = (int16_t)change->blocks;
    entry->pool = (uint8_t)tn_counter_pool(request->pool->is_small);
}

/* Marks the block found allocated and logs that. */
static TN_INLINE void tn_serve_alloc(struct tn_heap *heap, struct tn_shard *shard,
                                     struct tn_undo_log *log, struct tn_request *request,
                                     const struct tn_private_pool *owner)
{
    const bool split = tn_request_splits(heap, request);
    const struct tn_split_change change = tn_heap_mark_allocated(
        heap, shard, request->block, request->size, request->requested, split, request->stack);

    /* Undo and redo count no oversize allocations, age nothing, and do not look at the time. */
    if (request->block->size < heap->config.max_split_size && !tn_heap_collects_garbage(heap) &&
        !request->is_timed && tn_undo_log_wants_entry(log)) {
        tn_serve_add_entry(log, request, owner, split, &change);
    } else {
        tn_undo_log_invalidate(heap, shard, log);
    }
}

/* Takes a free block of the pool (NULL: the default ones) that fits, marks it allocated and logs
 * that; false if there is none. The log is flushed and counted. */
static TN_INLINE bool tn_serve(struct tn_heap *heap, struct tn_shard *shard,
                               struct tn_undo_log *log, struct tn_request *request,
                               struct tn_private_pool *owner, tarn_ptr *ptr_out)
{
    tn_request_route(heap, request, owner);
    if (tn_unlikely(tn_request_prepare(heap, shard, request, NULL))) {
        return false;
    }
    if (tn_unlikely(!tn_best_fit(heap, request))) {
        tn_fit_uncount(heap, request);
        return false;
    }
    tn_serve_alloc(heap, shard, log, request, owner);
    *ptr_out = request->block->address;
    return true;
}

/* Frees the block, unless there is none or other streams use it. */
static TN_INLINE bool tn_serve_free(struct tn_heap *heap, const struct tn_map_entry *entry,
                                    uint64_t stack)
{
    if (tn_unlikely(!entry->slot || tn_ptr_entry_block(*entry->slot)->uses != 0)) {
        return false;
    }
    struct tn_block *block = tn_ptr_entry_block(*entry->slot);

    tn_heap_remove_entry(entry);
    tn_heap_mark_free(heap, &heap->shard, block, false, stack);
    return true;
}

#endif
