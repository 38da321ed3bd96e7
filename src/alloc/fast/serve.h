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
static inline void tn_serve_add_entry(struct tn_undo_log *log, const struct tn_request *request,
                                      bool split, const struct tn_split_change *change)
{
    struct tn_undo_entry *entry = tn_undo_log_add(log);
    struct tn_block *block = request->block;

    entry->block = block;
    entry->address = block->address;
    entry->requested = request->requested;
    entry->stream = request->stream;
    entry->stale = split ? &block->next->requested_size : &log->unused;
    entry->split_bytes = change->bytes;
    entry->split_blocks = (int16_t)change->blocks;
    entry->pool = (uint8_t)tn_counter_pool(request->pool->is_small);
}

/* Marks the block found allocated and logs that. */
static TN_INLINE void tn_serve_alloc(struct tn_heap *heap, struct tn_shard *shard,
                                     struct tn_undo_log *log, struct tn_request *request)
{
    const bool split = tn_request_splits(heap, request);
    const struct tn_split_change change = tn_heap_mark_allocated(
        heap, shard, request->block, request->size, request->requested, split, request->stack);

    /* Undo and redo count no oversize allocations, and age nothing. */
    if (request->block->size < heap->config.max_split_size && !tn_heap_collects_garbage(heap) &&
        tn_undo_log_wants_entry(log)) {
        tn_serve_add_entry(log, request, split, &change);
    } else {
        tn_undo_log_invalidate(heap, shard, log);
    }
}

#endif
