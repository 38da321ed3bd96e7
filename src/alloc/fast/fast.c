/* SPDX-License-Identifier: MIT */
#include "alloc/fast/fast.h"

void tn_fast_init(struct tn_fast *fast, struct tn_heap *heap, tn_fast_concerns concerns)
{
    fast->concerns = concerns;
    tn_stream_caches_init(&fast->caches);
    tn_biased_lock_set_bias(&heap->lock, TN_FAST_HAS(TN_PART_BIASED_LOCK));
}

void tn_fast_fini(struct tn_fast *fast)
{
    tn_stream_caches_fini(&fast->caches);
}

static unsigned heap_busy(const struct tn_heap *heap)
{
    return atomic_load_explicit(&heap->busy, memory_order_relaxed);
}

/* ---- sides ---- */

/* Through which calls for a stream are served: its cache, or else what is the heap's own. */
struct fast_side {
    struct tn_stream_cache *cache; /* NULL: the stream has none that is open */
    struct tn_shard *shard;
    struct tn_undo_log *log;
};

static struct fast_side fast_side_of(struct tn_fast *fast, struct tn_heap *heap, tarn_stream stream)
{
    struct tn_stream_cache *cache =
        tn_fast_has_caches(fast) ? tn_stream_caches_find(&fast->caches, stream) : NULL;

    return (struct fast_side){
        .cache = cache,
        .shard = cache ? &cache->shard : &heap->shard,
        .log = cache ? &cache->log : &fast->log,
    };
}

/* Closes all caches, of which some are open, and empties all logs; the caches are collected. */
static void fast_drop(struct tn_fast *fast, struct tn_heap *heap)
{
    tn_undo_log_invalidate(heap, &heap->shard, &fast->log);
    for (uint32_t i = 0; i < fast->caches.count; i++) {
        struct tn_stream_cache *cache = fast->caches.list[i];

        tn_undo_log_invalidate(heap, &cache->shard, &cache->log);
    }
    tn_stream_caches_close(&fast->caches);
}

/* Takes the caches, if there are any, and brings the counters up to date. */
static void fast_collect(struct tn_fast *fast, struct tn_heap *heap)
{
    if (tn_fast_has_caches(fast)) {
        tn_stream_caches_collect(&fast->caches, heap);
    }
    tn_undo_log_count(&fast->log, &heap->shard.counters);
}

/* The same for a call that the caches did not serve: they close if they do not pay. */
static void fast_collect_for_call(struct tn_fast *fast, struct tn_heap *heap)
{
    fast_collect(fast, heap);
    if (tn_fast_has_caches(fast) && !tn_stream_caches_pay(&fast->caches)) {
        fast_drop(fast, heap);
    }
}

/* Releases the caches again, with new quotas, and updates the bit of `busy` that says whether there
 * are any. */
static void fast_resume(struct tn_fast *fast, struct tn_heap *heap)
{
    unsigned busy =
        atomic_load_explicit(&heap->busy, memory_order_relaxed) & ~(unsigned)TN_BUSY_CACHES;

    if (tn_fast_has_caches(fast)) {
        tn_undo_log_count(&fast->log, &heap->shard.counters);
        tn_stream_caches_redistribute(&fast->caches, heap);
        busy |= TN_BUSY_CACHES;
    }
    atomic_store_explicit(&heap->busy, busy, memory_order_relaxed);
}

static void fast_leave(struct tn_fast *fast, struct tn_heap *heap)
{
    fast_resume(fast, heap);
    tn_biased_lock_release(&heap->lock);
}

void tn_fast_flush_caches(struct tn_fast *fast, struct tn_heap *heap, enum tn_flush what)
{
    if (what == TN_FLUSH_END) {
        fast_resume(fast, heap);
        return;
    }
    fast_collect(fast, heap);
    if (what == TN_FLUSH_ALL) {
        fast_drop(fast, heap);
    } else if (what == TN_FLUSH_BLOCKS) {
        tn_undo_log_flush(heap, &heap->shard, &fast->log);
        for (uint32_t i = 0; i < fast->caches.count; i++) {
            tn_undo_log_flush(heap, &fast->caches.list[i]->shard, &fast->caches.list[i]->log);
        }
    }
}

/* Captures the stack that an event of this `level` may want, then takes the lock. False, without
 * the lock, if every allocation changes free blocks before it takes one. */
static inline bool fast_enter_slow(struct tn_heap *heap, enum tarn_context_level level,
                                   uint64_t *stack)
{
    if (heap_busy(heap) & TN_BUSY_BLOCKS) {
        return false;
    }
    *stack = tn_heap_capture(heap, level);
    tn_biased_lock_acquire(&heap->lock);
    if (tn_likely(!(heap_busy(heap) & TN_BUSY_BLOCKS))) {
        return true;
    }
    tn_biased_lock_release(&heap->lock);
    return false;
}

/* ---- allocating ---- */

/* Through what the request may be served. Caches open here under contention, but not while there
 * are receivers, because caches send no events, nor while some allocations must look at more than
 * their free set first, nor while searches age blocks of all streams. */
static struct fast_side fast_prepare_side(struct tn_fast *fast, struct tn_heap *heap,
                                          tarn_stream stream)
{
    if (!(heap_busy(heap) & (TN_BUSY_SINKS | TN_BUSY_SOME | TN_BUSY_AGES)) &&
        tn_stream_caches_consider(&fast->caches, heap, stream)) {
        /* it may have entries of that stream */
        tn_undo_log_invalidate(heap, &heap->shard, &fast->log);
    }
    if (tn_fast_has_caches(fast)) {
        tn_stream_caches_remember(&fast->caches, stream);
    }
    const struct fast_side side = fast_side_of(fast, heap, stream);

    tn_undo_log_flush(heap, side.shard, side.log);
    return side;
}

/* Redoes the request in the log of its stream's cache, where the peaks may rise here. */
static const struct tn_undo_entry *fast_redo_in_cache(struct tn_fast *fast, struct tn_heap *heap,
                                                      const struct tn_request *request)
{
    struct tn_undo_log *log = fast_side_of(fast, heap, request->stream).log;

    log->ceiling = log->end;
    const struct tn_undo_entry *entry = tn_undo_log_redo(log, request->requested, request->stream);

    tn_undo_log_count(log, &heap->shard.counters);
    tn_stream_caches_remember(&fast->caches, request->stream);
    return entry;
}

/* Releases the lock, which is held. The log of the streams without a cache does not serve the
 * request. */
static TN_NOINLINE bool fast_alloc_locked(struct tn_fast *fast, struct tn_heap *heap, uint64_t size,
                                          tarn_stream stream, uint64_t stack, tarn_ptr *ptr_out)
{
    struct tn_request request = {.requested = size, .stream = stream, .stack = stack};
    const struct tn_undo_entry *entry = NULL;
    bool served = false;

    fast_collect_for_call(fast, heap);
    if (tn_fast_has_caches(fast)) {
        entry = fast_redo_in_cache(fast, heap, &request);
    }
    if (entry) {
        tn_assert(stack == 0); /* caches are open only while nobody receives events */
        *ptr_out = entry->address;
        served = true;
    } else if (size < TN_MAX_REQUEST) {
        const struct fast_side side = fast_prepare_side(fast, heap, stream);

        served = tn_serve(heap, side.shard, side.log, &request, NULL, ptr_out);
        if (served) {
            tn_heap_end_capture(heap, stack); /* the block has it */
        }
        if (side.cache) {
            tn_quota_fold(&heap->shard.counters, &side.shard->counters);
        }
    }
    fast_leave(fast, heap);
    return served;
}

TN_NOINLINE bool tn_fast_alloc_miss(struct tn_fast *fast, struct tn_heap *heap, uint64_t size,
                                    tarn_stream stream, tarn_ptr *ptr_out)
{
    if (tn_unlikely(size >= TN_MAX_REQUEST ||
                    tn_stream_caches_may_open(&fast->caches, &heap->lock))) {
        return fast_alloc_locked(fast, heap, size, stream, 0, ptr_out);
    }
    struct tn_request request = {.requested = size, .stream = stream};

    if (!tn_undo_log_is_empty(&fast->log)) {
        tn_undo_log_count(&fast->log, &heap->shard.counters);
        tn_undo_log_flush(heap, &heap->shard, &fast->log);
    }
    const bool served = tn_serve(heap, &heap->shard, &fast->log, &request, NULL, ptr_out);

    tn_biased_lock_release(&heap->lock);
    return served;
}

/* Whether requests that name the pool find what is free in it, and nothing else has to be asked:
 * none are served while it sleeps, and under the compact policy the engine looks whether a capture
 * uses it. */
static bool fast_serves_pool(const struct tn_heap *heap, const struct tn_private_pool *owner)
{
    return !owner->sleeps && heap->config.policy != TARN_POLICY_COMPACT;
}

TN_NOINLINE bool tn_fast_alloc_in_miss(struct tn_fast *fast, struct tn_heap *heap,
                                       struct tn_private_pool *owner, uint64_t size,
                                       tarn_stream stream, tarn_ptr *ptr_out)
{
    struct tn_request request = {.requested = size, .stream = stream};
    bool served = false;

    if (tn_likely(size < TN_MAX_REQUEST && fast_serves_pool(heap, owner))) {
        if (!tn_undo_log_is_empty(&fast->log)) {
            tn_undo_log_count(&fast->log, &heap->shard.counters);
            tn_undo_log_flush(heap, &heap->shard, &fast->log);
        }
        served = tn_serve(heap, &heap->shard, &fast->log, &request, owner, ptr_out);
    }
    tn_biased_lock_release(&heap->lock);
    return served;
}

/* The events of calls that the log served while somebody receives events; both take ownership of
 * the stack. */
static TN_NOINLINE void emit_redo(struct tn_heap *heap, const struct tn_undo_entry *entry,
                                  uint64_t stack)
{
    tn_assert(entry->block->u.stack == 0);
    entry->block->u.stack = stack;
    tn_heap_end_capture(heap, stack);
    tn_heap_emit(heap, TARN_ACTION_ALLOC, entry->address, entry->requested, entry->stream,
                 entry->block->set->pool, stack);
}

static TN_NOINLINE void emit_undo(struct tn_heap *heap, const struct tn_undo_entry *entry,
                                  uint64_t stack)
{
    const uint64_t shown = stack ? stack : entry->block->u.stack;

    tn_heap_emit_free(heap, entry->address, entry->requested, entry->stream,
                      entry->block->set->pool, shown);
    tn_heap_drop_stack(heap, entry->block->u.stack);
    tn_heap_drop_captured(heap, stack);
    entry->block->u.stack = 0;
}

TN_NOINLINE bool tn_fast_alloc_slow(struct tn_fast *fast, struct tn_heap *heap, uint64_t size,
                                    tarn_stream stream, uint64_t *stack, tarn_ptr *ptr_out)
{
    if (tn_fast_has_caches(fast) &&
        tn_stream_cache_alloc(&fast->caches, heap, size, stream, ptr_out)) {
        return true;
    }
    if (!fast_enter_slow(heap, TARN_CONTEXT_STATE, stack)) {
        return false;
    }
    /* The receivers have been switched off since: a block in the log would keep a stack that nobody
     * releases. */
    const bool is_stale = *stack != 0 && !tn_heap_has_sinks(heap);

    if (is_stale || ((heap_busy(heap) & TN_BUSY_SOME) && fast->concerns(heap, stream))) {
        tn_biased_lock_release(&heap->lock);
        return false;
    }
    const struct tn_undo_entry *entry =
        tn_fast_has_caches(fast) ? NULL : tn_undo_log_redo(&fast->log, size, stream);

    if (!entry) {
        return fast_alloc_locked(fast, heap, size, stream, *stack, ptr_out);
    }
    *ptr_out = entry->address;
    if (tn_heap_has_sinks(heap)) {
        emit_redo(heap, entry, *stack);
    }
    tn_biased_lock_release(&heap->lock);
    return true;
}

/* ---- freeing ---- */

/* Empties the log of the block's stream. No slot: nothing is allocated at that address. */
static struct tn_map_entry fast_find_to_free(struct tn_fast *fast, struct tn_heap *heap,
                                             tarn_ptr ptr)
{
    tn_undo_log_invalidate(heap, &heap->shard, &fast->log);
    struct tn_map_entry entry = tn_heap_look_up(heap, ptr);

    if (entry.slot && tn_fast_has_caches(fast)) {
        const struct tn_block *block = tn_ptr_entry_block(*entry.slot);
        const struct fast_side side = fast_side_of(fast, heap, block->set->stream);

        if (side.cache && entry.shard == &heap->shard) {
            tn_stream_caches_excuse(&fast->caches);
        }
        tn_undo_log_invalidate(heap, side.shard, side.log);
        entry = tn_heap_look_up(heap, ptr); /* it may have been freed in that log */
    }
    return entry;
}

TN_NOINLINE bool tn_fast_free_slow(struct tn_fast *fast, struct tn_heap *heap, tarn_ptr ptr,
                                   uint64_t *stack)
{
    if (tn_fast_has_caches(fast) && tn_stream_cache_free(&fast->caches, heap, ptr)) {
        return true;
    }
    if (!fast_enter_slow(heap, TARN_CONTEXT_ALL, stack)) {
        return false;
    }
    const struct tn_undo_entry *entry =
        tn_fast_has_caches(fast) ? NULL : tn_undo_log_undo(&fast->log, ptr);

    if (entry) { /* nothing is in the log while searches age blocks: somebody receives events */
        emit_undo(heap, entry, *stack);
        tn_biased_lock_release(&heap->lock);
        return true;
    }
    fast_collect_for_call(fast, heap);
    const struct tn_map_entry found = fast_find_to_free(fast, heap, ptr);
    const bool served = tn_serve_free(heap, &found, *stack);

    if (served) {
        tn_heap_drop_captured(heap, *stack);
    }
    fast_leave(fast, heap);
    return served;
}
