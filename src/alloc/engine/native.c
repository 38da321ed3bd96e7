/* SPDX-License-Identifier: MIT */
/*
 * PyTorch's allocation and free, step by step.
 *
 * Allocating: complete the frees whose events are done; round the size and find the pool that the
 * request is routed to; take the best fit among its free blocks, or else climb the ladder of
 * fallbacks (ladder.c); split the block if the remainder is worth keeping; mark it allocated.
 *
 * Freeing: if other streams used the block, record events and let it wait; else coalesce it with
 * its free neighbours and insert it into its free set.
 *
 * The fast path is tried first. A call that it declines finds the heap as if the fast path did not
 * exist.
 */
#include "alloc/engine/native.h"

#include "alloc/engine/call_back.h"
#include "alloc/engine/core_check.h"
#include "alloc/engine/ladder.h"
#include "alloc/engine/oom.h"
#include "alloc/engine/watch_source.h"
#include "alloc/pool/best_fit.h"
#include "base/probe.h"

/* ---- allocating ---- */

/* Completes the frees whose other streams are done. Inline, as a part of each allocation. */
static TN_INLINE enum tarn_status
complete_frees(struct tn_engine *engine, const struct tn_request *request, struct tarn_error *error)
{
    struct tn_stream_waits *waits = &engine->waits;

    if (tn_heap_is_capturing(&engine->heap)) {
        return tn_stream_waits_reclaim(waits, request->stream, request->stack, error);
    }
    if (waits->pending == 0 && waits->deferred_count == 0) {
        return TARN_OK;
    }
    const uint64_t pending = waits->pending;
    const enum tarn_status st = tn_stream_waits_process(waits, request->stack, error);

    if (waits->pending < pending && tn_compact_is_on(&engine->heap)) {
        tn_compact_mark(&engine->compact);
    }
    return st;
}

enum tarn_status tn_native_find_by_ladder(struct tn_engine *engine, struct tn_request *request,
                                          struct tarn_error *error)
{
    enum tarn_status st = tn_ladder_climb(engine, request, error);

    return st ? st : tn_ladder_prepare(engine, request, error);
}

/* Whether what is routed to a private pool may be a capture's. Announced ones say so. Under
 * rules:2.11 they are not announced, and any use may be one, except on the legacy default stream:
 * CUDA does not capture that. */
static bool may_be_capture(const struct tn_heap *heap, tarn_stream stream)
{
    return tn_heap_is_capturing(heap) && (stream != 0 || heap->private_pools.capture_count > 0);
}

/* Whether a captured graph will use what the request gets. */
static bool is_captured(const struct tn_heap *heap, tarn_stream stream, bool is_routed)
{
    struct tarn_device *device = heap->device;
    uint64_t capture = 0;
    uint32_t count = 0;

    return (is_routed && may_be_capture(heap, stream)) ||
           device->ops->capture_info(device, stream, &capture, NULL, 0, &count) != TARN_OK ||
           capture != 0;
}

/* Sends the request to the pool, or where its stream is routed to (`owner` NULL), and prepares it.
 * That pool must be awake. */
static enum tarn_status route(struct tn_heap *heap, struct tn_request *request,
                              struct tn_private_pool *owner, struct tarn_error *error)
{
    const bool is_routed = owner == NULL;

    if (is_routed) {
        owner = tn_private_pool_route(&heap->private_pools, request->stream);
    }
    const enum tarn_status st = tn_private_pool_check_awake(owner, error);

    if (st) {
        return st;
    }
    if (owner && !owner->pages_stay && tn_compact_is_on(heap)) {
        owner->pages_stay = is_captured(heap, request->stream, is_routed);
    }
    tn_request_route(heap, request, owner);
    return tn_request_prepare(heap, &heap->shard, request, error);
}

enum tarn_status tn_native_begin(struct tn_engine *engine, struct tn_request *request,
                                 struct tn_private_pool *owner, struct tarn_error *error)
{
    const enum tarn_status st = complete_frees(engine, request, error);

    return st ? st : route(&engine->heap, request, owner, error);
}

/* TARN_ERR_NOT_FOUND or TARN_ERR_OUT_OF_MEMORY: memory has run out. */
static enum tarn_status alloc_locked(struct tn_engine *engine, struct tn_request *request,
                                     struct tn_private_pool *owner, tarn_ptr *ptr_out,
                                     struct tarn_error *error)
{
    struct tn_heap *heap = &engine->heap;
    enum tarn_status st = tn_native_begin(engine, request, owner, error);

    if (st == TARN_OK && !tn_best_fit(heap, request)) {
        st = tn_native_find_by_ladder(engine, request, error);
    }
    if (st == TARN_OK) {
        (void)tn_heap_mark_allocated(heap, &heap->shard, request->block, request->size,
                                     request->requested, tn_request_splits(heap, request),
                                     request->stack);
        *ptr_out = request->block->address;
        if (tn_compact_limits_cache(heap)) {
            tn_compact_shed(&engine->compact, request->stack);
        }
    }
    return st;
}

/* Without the lock, and not for a request that an observer makes. */
static void call_observers(const struct tn_engine *engine, const struct tn_callback_list *observers,
                           const struct tarn_oom *oom)
{
    struct tn_call_back call;

    if (tn_call_back_is_inside(engine, TN_CALL_OOM_OBSERVER)) {
        return;
    }
    tn_call_back_begin(&call, engine, TN_CALL_OOM_OBSERVER);
    for (unsigned i = 0; i < observers->count; i++) {
        ((tarn_oom_observer)observers->items[i].call)(observers->items[i].context, oom);
    }
    tn_call_back_end(&call);
}

/* Counters and the event are of the moment; what other processes use is asked for without the lock,
 * and only if somebody wants the report. */
TN_COLD enum tarn_status tn_native_run_out(struct tn_engine *engine,
                                           const struct tn_request *request,
                                           struct tarn_error *error)
{
    const struct tn_callback_list observers = engine->observers;
    const struct tn_callback writer = engine->writer;
    char processes[TN_OOM_PROCESSES_MAX];

    tn_oom_count(&engine->heap, request);
    struct tarn_oom oom = tn_oom_describe(&engine->heap, request);

    tn_heap_drop_captured(&engine->heap, request->stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    if (error || observers.count > 0 || tn_watch_source_is_on(engine->owner)) {
        tn_oom_complete(engine->heap.device, &oom, processes);
        (void)tn_oom_write(&oom, &writer, error);
        call_observers(engine, &observers, &oom);
    }
    TN_PROBE4(oom, oom.requested, oom.device, oom.device_free, oom.reserved);
    tn_watch_source_note_oom(engine->owner, &oom);
    return TARN_ERR_OUT_OF_MEMORY;
}

/* Takes ownership of `stack`; 0: none was captured. */
static TN_NOINLINE enum tarn_status alloc_slow(struct tn_engine *engine,
                                               struct tn_private_pool *owner, uint64_t size,
                                               tarn_stream stream, uint64_t stack,
                                               tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct tn_request request = {.requested = size, .stream = stream};
    enum tarn_status st;

    stack = stack ? stack : tn_heap_capture(&engine->heap, TARN_CONTEXT_STATE);
    tn_engine_lock(engine);
    request.stack = tn_heap_keep_if_received(&engine->heap, stack);
    if (size >= TN_MAX_REQUEST) {
        st = tn_oom_absurd(error);
        goto out;
    }
    st = alloc_locked(engine, &request, owner, ptr_out, error);

    if (st == TARN_ERR_NOT_FOUND || st == TARN_ERR_OUT_OF_MEMORY) {
        return tn_native_run_out(engine, &request, error);
    }
out:
    if (st) {
        tn_heap_drop_captured(&engine->heap, request.stack);
    } else {
        tn_heap_end_capture(&engine->heap, request.stack); /* the block has it */
    }
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

TN_NO_STACK_GUARD enum tarn_status tn_native_alloc(struct tn_engine *engine, uint64_t size,
                                                   tarn_stream stream, tarn_ptr *ptr_out,
                                                   struct tarn_error *error)
{
    uint64_t stack = 0;

    if (tn_likely(tn_fast_alloc(&engine->fast, &engine->heap, size, stream, &stack, ptr_out))) {
        tn_core_assert_fast(engine);
        TN_PROBE4(malloc, *ptr_out, engine->heap.device->ordinal, size, stream);
        return TARN_OK;
    }
    const enum tarn_status st = alloc_slow(engine, NULL, size, stream, stack, ptr_out, error);

    TN_PROBE4(malloc, st ? 0 : *ptr_out, engine->heap.device->ordinal, size, stream);
    return st;
}

TN_NO_STACK_GUARD enum tarn_status tn_native_alloc_in(struct tn_engine *engine,
                                                      struct tn_private_pool *owner, uint64_t size,
                                                      tarn_stream stream, tarn_ptr *ptr_out,
                                                      struct tarn_error *error)
{
    if (tn_likely(tn_fast_alloc_in(&engine->fast, &engine->heap, owner, size, stream, ptr_out))) {
        tn_core_assert_fast(engine);
        TN_PROBE4(malloc, *ptr_out, engine->heap.device->ordinal, size, stream);
        return TARN_OK;
    }
    const enum tarn_status st = alloc_slow(engine, owner, size, stream, 0, ptr_out, error);

    TN_PROBE4(malloc, st ? 0 : *ptr_out, engine->heap.device->ordinal, size, stream);
    return st;
}

/* ---- freeing ---- */

static enum tarn_status free_block(struct tn_engine *engine, struct tn_block *block, uint64_t stack,
                                   struct tarn_error *error)
{
    const bool waits = tn_stream_use_end(&engine->waits, block);

    if (waits) {
        const bool capturing = tn_heap_is_capturing(&engine->heap);
        const enum tarn_status st = tn_stream_use_release(&engine->waits, block, capturing, error);

        if (st) {
            return st;
        }
    }
    tn_heap_mark_free(&engine->heap, &engine->heap.shard, block, waits, stack);
    return TARN_OK;
}

enum tarn_status tn_native_free_locked(struct tn_engine *engine, struct tn_block *block,
                                       uint64_t stack, struct tarn_error *error)
{
    const struct tn_map_entry entry = tn_heap_look_up(&engine->heap, block->address);
    const enum tarn_status st = free_block(engine, block, stack, error);

    if (st == TARN_OK) {
        tn_heap_remove_entry(&entry);
    }
    return st;
}

void tn_native_free_surely(struct tn_engine *engine, struct tn_block *block, uint64_t stack)
{
    const enum tarn_status st = tn_native_free_locked(engine, block, stack, NULL);

    if (st) { /* only for lack of an event: it is recorded later */
        tn_stream_use_defer(&engine->waits, block);
        const struct tn_map_entry entry = tn_heap_look_up(&engine->heap, block->address);

        tn_heap_remove_entry(&entry);
        tn_heap_mark_free(&engine->heap, &engine->heap.shard, block, true, stack);
    }
}

/* Takes ownership of `stack`; 0: none was captured. */
static TN_NOINLINE enum tarn_status free_slow(struct tn_engine *engine, tarn_ptr ptr,
                                              uint64_t stack, struct tarn_error *error)
{
    stack = stack ? stack : tn_heap_capture(&engine->heap, TARN_CONTEXT_ALL);
    tn_engine_lock(engine);
    const struct tn_map_entry entry = tn_heap_look_up(&engine->heap, ptr);
    const enum tarn_status st =
        entry.slot ? free_block(engine, tn_ptr_entry_block(*entry.slot), stack, error)
                   : tn_pointer_unknown(ptr, error);

    if (st == TARN_OK) {
        tn_heap_remove_entry(&entry);
    }
    if (tn_compact_limits_cache(&engine->heap)) {
        tn_compact_shed(&engine->compact, stack);
    }
    tn_heap_drop_captured(&engine->heap, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

TN_NO_STACK_GUARD enum tarn_status tn_native_free(struct tn_engine *engine, tarn_ptr ptr,
                                                  struct tarn_error *error)
{
    uint64_t stack = 0;

    TN_PROBE1(free, ptr);
    if (tn_unlikely(!tn_fast_free(&engine->fast, &engine->heap, ptr, &stack))) {
        return free_slow(engine, ptr, stack, error);
    }
    tn_core_assert_fast(engine);
    return TARN_OK;
}

enum tarn_status tn_native_record_stream(struct tn_engine *engine, tarn_ptr ptr, tarn_stream stream,
                                         struct tarn_error *error)
{
    enum tarn_status st;

    tn_engine_lock(engine);
    struct tn_block *block = tn_heap_find(&engine->heap, ptr);

    if (!block) {
        st = tn_pointer_unknown(ptr, error);
    } else {
        const bool capturing = tn_heap_is_capturing(&engine->heap);

        st = tn_stream_use_record(&engine->waits, block, stream, capturing);
        if (st) {
            (void)tn_fail_memory(error);
        }
    }
    tn_engine_unlock(engine);
    return st;
}
