/* SPDX-License-Identifier: MIT */
#include "alloc/engine/ladder.h"

#include "alloc/engine/call_back.h"
#include "alloc/engine/gc.h"
#include "alloc/pool/expandable.h"
#include "alloc/pool/segment.h"

#include <inttypes.h>

/* ---- asking the device ---- */

/* The device call. Without the lock other threads may change anything but the pool, which is
 * pinned. */
static enum tarn_status device_alloc(struct tn_engine *engine, struct tn_private_pool *owner,
                                     uint64_t size, uint64_t *address_out)
{
    struct tarn_device *device = engine->heap.device;
    enum tarn_status st;

    if (!engine->heap.config.release_lock_on_device_alloc) {
        return device->ops->alloc(device, size, address_out);
    }
    if (owner) {
        owner->pins++;
    }
    tn_engine_unlock(engine);
    st = device->ops->alloc(device, size, address_out);
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
    st = device_alloc(engine, set->pool->owner, size, &address);
    if (st) {
        tn_segment_discard(&engine->heap, &fresh);
        return tn_heap_device_failed(&engine->heap, st, "allocating memory", error);
    }
    *block_out = tn_segment_add(&engine->heap, &fresh, set, address, size, stack);
    return TARN_OK;
}

static bool limit_forbids(const struct tn_heap *heap, const struct tn_request *request)
{
    return tn_heap_limit_is_set(heap) && heap->reserved + request->segment_size > heap->limit;
}

/* PyTorch's alloc_block. A full device is "not found", so that the ladder goes on. */
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

/* ---- the other fallbacks ---- */

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

/* Pools that may help out serve the request from a free block of theirs, as if it had been routed
 * to them. Not for requests of private pools. */
static enum tarn_status step_borrow(struct tn_engine *engine, struct tn_request *request,
                                    struct tarn_error *error)
{
    const bool small = request->pool->is_small;
    struct tn_private_pool *p = engine->heap.private_pools.first;
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    for (; !request->pool->owner && p && st == TARN_ERR_NOT_FOUND; p = p->next) {
        if (!p->use_on_oom || p->use_count == 0) {
            continue;
        }
        struct tn_request borrowed = *request;

        borrowed.expandable = false; /* PyTorch lends plain segments only */
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

static enum tarn_status step_collect_garbage(struct tn_engine *engine, struct tn_request *request,
                                             struct tarn_error *error)
{
    if (!tn_heap_collects_garbage(&engine->heap)) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st = tn_gc_collect(engine, request->stack, error);

    return st ? st : TARN_ERR_NOT_FOUND;
}

/* With throw_on_cudamalloc_oom, what the limit forbids is refused before anything is given back or
 * the device is asked. */
static enum tarn_status step_refuse(struct tn_engine *engine, struct tn_request *request,
                                    struct tarn_error *error)
{
    (void)error;
    request->rejected =
        engine->heap.config.throw_on_device_oom && limit_forbids(&engine->heap, request);
    return request->rejected ? TARN_ERR_OUT_OF_MEMORY : TARN_ERR_NOT_FOUND;
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

static enum tarn_status step_release_cached(struct tn_engine *engine, struct tn_request *request,
                                            struct tarn_error *error)
{
    if (engine->heap.private_pools.route_count > 0) { /* a capture may be under way: no waiting for
                                                    events */
        return TARN_ERR_NOT_FOUND;
    }
    /* Given up while the lock was not held, the request's own pool would go, too. */
    struct tn_private_pool *owner = request->pool->owner;

    if (owner) {
        owner->pins++;
    }
    const enum tarn_status st =
        tn_gc_release_cached(engine, (struct tarn_pool_id){0, 0}, request->stack, error);

    if (owner) {
        owner->pins--;
    }
    if (st) {
        return st;
    }
    engine->heap.counters.totals.num_alloc_retries++;
    return step_ask_device(engine, request, error);
}

/* What is tried for a request that no free block fits, in order, until a step gives a block.
 * TARN_ERR_NOT_FOUND means to go on, any other failure ends the request. */
static const struct ladder_step {
    const char *name;
    enum tarn_status (*run)(struct tn_engine *engine, struct tn_request *request,
                            struct tarn_error *error);
} ladder[] = {
    {"refuse what the limit forbids, if asked to", step_refuse},
    {"ask the callbacks to free something", step_callbacks},
    {"collect garbage above the threshold", step_collect_garbage},
    {"ask the device", step_ask_device},
    {"borrow from pools that allow it", step_borrow},
    {"release oversize blocks and ask again", step_release_oversize},
    {"release the whole cache and ask again", step_release_cached},
};

enum {
    LADDER_STEPS = sizeof ladder / sizeof ladder[0]
};

enum tarn_status tn_ladder_climb(struct tn_engine *engine, struct tn_request *request,
                                 struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    request->segment_size = tn_segment_size(request->size, &engine->heap.config);
    for (unsigned i = 0; st == TARN_ERR_NOT_FOUND && i < LADDER_STEPS; i++) {
        st = ladder[i].run(engine, request, error);
    }
    return st;
}
