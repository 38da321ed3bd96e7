/* SPDX-License-Identifier: MIT */
#include "alloc/engine/ladder.h"

#include "alloc/engine/call_back.h"
#include "alloc/engine/gc.h"
#include "alloc/pool/growth.h"
#include "alloc/pool/segment.h"
#include "base/clock.h"

#include <inttypes.h>

/* ---- a segment from the device ---- */

/* From the source of the pool, if it has one, else from the device. */
static enum tarn_status segment_alloc(struct tarn_device *device,
                                      const struct tn_private_pool *owner, uint64_t size,
                                      tarn_stream stream, uint64_t *address_out)
{
    if (!owner || !tn_private_pool_has_source(owner)) {
        return device->ops->alloc(device, size, address_out);
    }
    *address_out = owner->source.alloc(owner->source.context, size, stream);
    return *address_out ? TARN_OK : TARN_ERR_OUT_OF_MEMORY;
}

/* While the lock is dropped, other threads may change anything but the pool, which is pinned. */
static enum tarn_status device_alloc(struct tn_engine *engine, const struct tn_free_set *set,
                                     uint64_t size, uint64_t *address_out)
{
    struct tarn_device *device = engine->heap.device;
    struct tn_private_pool *owner = set->pool->owner;
    const tarn_stream stream = set->stream;
    enum tarn_status st;

    if (!engine->heap.config.release_lock_on_device_alloc && !tn_private_pool_has_source(owner)) {
        return device->ops->alloc(device, size, address_out);
    }
    if (owner) {
        owner->pins++;
    }
    tn_engine_unlock(engine);
    st = segment_alloc(device, owner, size, stream, address_out);
    tn_engine_lock(engine);
    if (owner) {
        owner->pins--;
    }
    return st;
}

enum tarn_status tn_ladder_take_segment(struct tn_engine *engine, struct tn_free_set *set,
                                        uint64_t size, uint64_t stack, struct tn_block **block_out,
                                        struct tarn_error *error)
{
    struct tn_new_segment fresh;
    uint64_t address = 0;
    enum tarn_status st = tn_segment_prepare(&engine->heap, &fresh, error);

    if (st) {
        return st;
    }
    st = device_alloc(engine, set, size, &address);
    if (st) {
        tn_segment_discard(&engine->heap, &fresh);
        return tn_heap_device_failed(&engine->heap, st, "allocating memory", error);
    }
    *block_out = tn_segment_add(&engine->heap, &fresh, set, address, size, stack);
    return TARN_OK;
}

/* ---- the steps, in order ---- */

static bool limit_forbids(const struct tn_heap *heap, const struct tn_request *request)
{
    return tn_heap_limit_is_set(heap) && heap->reserved + request->segment_size > heap->limit;
}

/* With throw_on_cudamalloc_oom, a request beyond the limit is refused before anything is given back
 * or the device is asked. */
static enum tarn_status step_refuse(struct tn_engine *engine, struct tn_request *request,
                                    struct tarn_error *error)
{
    (void)error;
    request->rejected =
        engine->heap.config.throw_on_device_oom && limit_forbids(&engine->heap, request);
    return request->rejected ? TARN_ERR_OUT_OF_MEMORY : TARN_ERR_NOT_FOUND;
}

/* Runs the callbacks without the lock, so that they may free blocks. The pool is pinned
 * meanwhile. */
static bool run_callbacks(struct tn_engine *engine, const struct tn_request *request)
{
    struct tn_private_pool *owner = request->pool->owner;
    const unsigned count = engine->callback_count;
    struct tn_call_back call;
    bool helped = false;

    if (owner) {
        owner->pins++;
    }
    tn_engine_unlock(engine);
    tn_call_back_begin(&call, engine, TN_CALL_MEMORY_CALLBACK);
    for (unsigned i = 0; i < count; i++) {
        const struct tn_memory_callback *callback = &engine->callbacks[i];

        helped =
            callback->call(callback->context, engine->owner, request->requested, request->stream) ||
            helped;
    }
    tn_call_back_end(&call);
    tn_engine_lock(engine);
    if (owner) {
        owner->pins--;
    }
    return helped;
}

static enum tarn_status step_callbacks(struct tn_engine *engine, struct tn_request *request,
                                       struct tarn_error *error)
{
    if (engine->callback_count == 0) {
        return TARN_ERR_NOT_FOUND;
    }
    if (tn_call_back_is_inside(engine, TN_CALL_MEMORY_CALLBACK)) {
        return tn_fail(error, TARN_ERR_STATE,
                       "a memory callback asked its allocator for %" PRIu64
                       " bytes, which no free block has: a callback may only free",
                       request->requested);
    }
    if (!run_callbacks(engine, request)) {
        return TARN_ERR_NOT_FOUND;
    }
    return tn_best_fit(&engine->heap, request) ? TARN_OK : TARN_ERR_NOT_FOUND;
}

static enum tarn_status step_collect_garbage(struct tn_engine *engine, struct tn_request *request,
                                             struct tarn_error *error)
{
    if (!tn_heap_collects_garbage(&engine->heap)) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st = tn_gc_collect(engine, request->stack, error);

    return st ? st : TARN_ERR_NOT_FOUND;
}

/* PyTorch's alloc_block. A full device is TARN_ERR_NOT_FOUND, so that the next step is tried. */
static enum tarn_status step_ask_device(struct tn_engine *engine, struct tn_request *request,
                                        struct tarn_error *error)
{
    enum tarn_status st;

    if (limit_forbids(&engine->heap, request)) {
        return TARN_ERR_NOT_FOUND;
    }
    if (request->expandable) {
        st = tn_expandable_alloc(&engine->heap, request->set, request->size, request->stack,
                                 &request->block, error);
    } else {
        st = tn_ladder_take_segment(engine, request->set, request->segment_size, request->stack,
                                    &request->block, error);
    }
    return st == TARN_ERR_OUT_OF_MEMORY ? TARN_ERR_NOT_FOUND : st;
}

/* Serves the request from a free block of a private pool that allows it (use_on_oom), as if the
 * request had been routed there. Requests of private pools do not borrow. */
static enum tarn_status step_borrow(struct tn_engine *engine, struct tn_request *request,
                                    struct tarn_error *error)
{
    const bool small = request->pool->is_small;
    struct tn_private_pool *p = engine->heap.private_pools.first;
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    for (; !request->pool->owner && p && st == TARN_ERR_NOT_FOUND; p = p->next) {
        if (!p->use_on_oom || p->use_count == 0 || p->sleeps) {
            continue;
        }
        struct tn_request borrowed = *request;

        borrowed.expandable = tn_compact_is_on(&engine->heap); /* PyTorch lends plain ones only */
        borrowed.pool = small ? &p->small : &p->large;
        borrowed.set = tn_pool_get_set(borrowed.pool, request->stream);
        if (!borrowed.set) {
            return tn_fail_memory(error);
        }
        if (tn_best_fit(&engine->heap, &borrowed)) {
            *request = borrowed;
            st = TARN_OK;
        }
    }
    return st;
}

static enum tarn_status step_release_oversize(struct tn_engine *engine, struct tn_request *request,
                                              struct tarn_error *error)
{
    bool released;
    const enum tarn_status st = tn_gc_release_oversize(engine, request->set, request->size,
                                                       request->stack, &released, error);

    if (st || !released) {
        return st ? st : TARN_ERR_NOT_FOUND;
    }
    return step_ask_device(engine, request, error);
}

/* Releases the whole cache. */
static enum tarn_status release_cached(struct tn_engine *engine, const struct tn_request *request,
                                       struct tarn_error *error)
{
    /* Events cannot be waited for. */
    if (tn_heap_is_capturing(&engine->heap)) {
        return TARN_ERR_NOT_FOUND;
    }
    /* If the request's own pool was released while the lock was dropped, this would delete it. */
    struct tn_private_pool *owner = request->pool->owner;

    if (owner) {
        owner->pins++;
    }
    const enum tarn_status st =
        tn_gc_release_cached(engine, (struct tarn_pool_id){0, 0}, request->stack, error);

    if (owner) {
        owner->pins--;
    }
    engine->heap.shard.counters.totals.num_alloc_retries += st == TARN_OK;
    return st;
}

static enum tarn_status step_release_cached(struct tn_engine *engine, struct tn_request *request,
                                            struct tarn_error *error)
{
    const enum tarn_status st = release_cached(engine, request, error);

    return st ? st : step_ask_device(engine, request, error);
}

/* ---- the steps of the compact policy ---- */

static enum tarn_status step_compact(struct tn_engine *engine, struct tn_request *request,
                                     struct tarn_error *error)
{
    return tn_compact_alloc(&engine->compact, request, TN_COMPACT_FREE, error);
}

static enum tarn_status step_compact_ordered(struct tn_engine *engine, struct tn_request *request,
                                             struct tarn_error *error)
{
    return tn_compact_alloc(&engine->compact, request, TN_COMPACT_ORDERED, error);
}

/* Gives the memory of private pools back that nobody uses any more: graphs that ran on other
 * streams may have used it, so the device is waited for. */
static enum tarn_status step_release_pools(struct tn_engine *engine, struct tn_request *request,
                                           struct tarn_error *error)
{
    bool any = false;

    for (const struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
        any = any || (p->freeable && p->segment_count > 0);
    }
    const enum tarn_status st = any ? release_cached(engine, request, error) : TARN_ERR_NOT_FOUND;

    return st ? st : step_compact_ordered(engine, request, error);
}

/* Waits for the blocks that other streams use, one after the other, until that helps. */
static enum tarn_status step_wait(struct tn_engine *engine, struct tn_request *request,
                                  struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_NOT_FOUND;
    bool waited = !tn_heap_is_capturing(&engine->heap);

    while (st == TARN_ERR_NOT_FOUND && waited) {
        st = tn_stream_waits_wait_one(&engine->waits, request->stack, &waited, error);
        if (st == TARN_OK) {
            st = tn_best_fit(&engine->heap, request) ? TARN_OK
                                                     : step_compact_ordered(engine, request, error);
        }
    }
    return st;
}

/* What is tried for a request that no free block fits, in order, until a step gives a block.
 * TARN_ERR_NOT_FOUND means to go on, any other failure ends the request. */
typedef enum tarn_status (*ladder_step)(struct tn_engine *engine, struct tn_request *request,
                                        struct tarn_error *error);

static const ladder_step ladder[] = {
    step_refuse,           /* what the limit forbids, if asked to */
    step_callbacks,        /* that may free something */
    step_collect_garbage,  /* above the threshold */
    step_ask_device,       /* for a segment, or for pages */
    step_borrow,           /* from pools that allow it */
    step_release_oversize, /* and ask the device again */
    step_release_cached,   /* and ask the device again */
    NULL,
};

/* Under the compact policy, for requests that expandable segments may serve. */
static const ladder_step compact_ladder[] = {
    step_compact,         /* free pages, or new ones */
    step_compact_ordered, /* pages of other streams, which the stream waits for */
    step_wait,            /* for blocks in use on other streams */
    step_callbacks,       /* that may free something */
    step_compact_ordered, /* with that */
    step_borrow,          /* from pools that allow it */
    step_release_pools,   /* that nobody uses any more, and once more */
    NULL,
};

enum tarn_status tn_ladder_climb(struct tn_engine *engine, struct tn_request *request,
                                 struct tarn_error *error)
{
    const bool compact = tn_compact_is_on(&engine->heap) && request->expandable;
    const ladder_step *step = compact ? compact_ladder : ladder;
    const uint64_t begin_ns = compact ? tn_clock_now_ns() : 0;
    const uint64_t pages_before = tn_compact_pages(&engine->compact);
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    request->segment_size = tn_segment_size(request->size, &engine->heap.config);
    for (; st == TARN_ERR_NOT_FOUND && *step; step++) {
        st = (*step)(engine, request, error);
    }
    if (compact && (st || tn_compact_pages(&engine->compact) > pages_before)) {
        tn_compact_measured(&engine->compact, tn_clock_now_ns() - begin_ns);
    }
    return st;
}
