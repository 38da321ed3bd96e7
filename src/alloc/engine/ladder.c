/* SPDX-License-Identifier: MIT */
#include "alloc/engine/ladder.h"

#include "alloc/engine/call_back.h"
#include "alloc/engine/gc.h"
#include "alloc/pool/growth.h"
#include "alloc/pool/segment.h"
#include "base/clock.h"
#include "tarn/pressure.h"

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

enum tarn_status tn_ladder_prepare(struct tn_engine *engine, struct tn_request *request,
                                   struct tarn_error *error)
{
    const enum tarn_status st =
        tn_request_prepare(&engine->heap, &engine->heap.shard, request, error);

    if (st && request->block) {
        tn_pool_insert(request->block);
    }
    return st;
}

/* ---- the steps, in order ---- */

static bool request_is_compact(const struct tn_engine *engine, const struct tn_request *request)
{
    return request->expandable && tn_compact_is_on(&engine->heap);
}

/* Bytes that serving the request may take from the device, at most. */
static uint64_t request_growth(const struct tn_engine *engine, const struct tn_request *request)
{
    const uint64_t page = request->pool->is_small || tn_compact_is_on(&engine->heap)
                              ? TN_SMALL_BUFFER
                              : engine->heap.config.large_segment_size;

    return request->expandable ? tn_pages_up(request->size, page) * page : request->segment_size;
}

/* Beyond the limit of the request's own pool. */
static bool pool_forbids(const struct tn_engine *engine, const struct tn_request *request)
{
    const struct tn_private_pool *owner = request->pool->owner;

    return owner && owner->limit != TARN_SIZE_UNLIMITED &&
           owner->reserved + request_growth(engine, request) > owner->limit;
}

static bool limit_forbids(const struct tn_engine *engine, const struct tn_request *request)
{
    const struct tn_heap *heap = &engine->heap;

    return (tn_heap_limit_is_set(heap) && heap->reserved + request->segment_size > heap->limit) ||
           pool_forbids(engine, request);
}

/* With throw_on_cudamalloc_oom, a request beyond the limit is refused before anything is given back
 * or the device is asked. */
static enum tarn_status step_refuse(struct tn_engine *engine, struct tn_request *request,
                                    struct tarn_error *error)
{
    (void)error;
    request->rejected = engine->heap.config.throw_on_device_oom && limit_forbids(engine, request);
    return request->rejected ? TARN_ERR_OUT_OF_MEMORY : TARN_ERR_NOT_FOUND;
}

/* Around calls without the lock, which may free blocks. The pool is pinned meanwhile. */
static void calls_begin(struct tn_engine *engine, const struct tn_request *request,
                        struct tn_call_back *call, enum tn_call_back_kind kind)
{
    if (request->pool->owner) {
        request->pool->owner->pins++;
    }
    tn_engine_unlock(engine);
    tn_call_back_begin(call, engine, kind);
}

static void calls_end(struct tn_engine *engine, const struct tn_request *request,
                      const struct tn_call_back *call)
{
    tn_call_back_end(call);
    tn_engine_lock(engine);
    if (request->pool->owner) {
        request->pool->owner->pins--;
    }
}

static bool run_callbacks(struct tn_engine *engine, const struct tn_request *request)
{
    const struct tn_callback_list list = engine->callbacks;
    struct tn_call_back call;
    bool helped = false;

    calls_begin(engine, request, &call, TN_CALL_MEMORY_CALLBACK);
    for (unsigned i = 0; i < list.count; i++) {
        const tarn_memory_callback callback = (tarn_memory_callback)list.items[i].call;

        helped =
            callback(list.items[i].context, engine->owner, request->requested, request->stream) ||
            helped;
    }
    calls_end(engine, request, &call);
    return helped;
}

/* Asks for room until `bytes` have been freed; returns how many. */
static uint64_t run_pressure(struct tn_engine *engine, const struct tn_request *request,
                             uint64_t bytes, bool is_soft)
{
    const struct tn_callback_list list = engine->pressures;
    const struct tn_private_pool *owner = request->pool->owner;
    struct tarn_pressure pressure = {
        .struct_size = sizeof pressure,
        .is_soft = is_soft,
        .allocator = engine->owner,
        .stream = request->stream,
        .pool = owner ? owner->id : (struct tarn_pool_id){0, 0},
    };
    struct tn_call_back call;
    uint64_t freed = 0;

    calls_begin(engine, request, &call, TN_CALL_PRESSURE);
    for (unsigned i = 0; i < list.count && freed < bytes; i++) {
        const tarn_pressure_callback callback = (tarn_pressure_callback)list.items[i].call;

        pressure.bytes = bytes - freed;
        const uint64_t more = callback(list.items[i].context, &pressure);

        freed += more < UINT64_MAX - freed ? more : UINT64_MAX - freed;
    }
    calls_end(engine, request, &call);
    return freed;
}

/* How often blocks have been freed so far. */
static int64_t frees_of(const struct tn_engine *engine)
{
    const struct tn_counter *out = &engine->heap.shard.counters.blocks.out;

    return out->allocated[TN_SMALL] + out->allocated[TN_LARGE] + out->origin[TN_SMALL] +
           out->origin[TN_LARGE] - tn_counter_all(out);
}

/* Rounds that led nowhere weigh on a request. One without a free: it should end soon. One after
 * which no less is allocated, because a callback allocates as much as it frees or because other
 * threads take what it frees: it should end some day. */
enum {
    WEIGHT_IN_VAIN = 1,
    WEIGHT_NO_FREE = 128,
    WEIGHT_MOST = TARN_PRESSURE_ROUNDS * WEIGHT_NO_FREE
};

/* Asks for room once more and returns how much was made, 0 = there is no point in going on: nobody
 * frees anything, or somebody only says so. */
static uint64_t pressure_round(struct tn_engine *engine, const struct tn_request *request,
                               uint64_t bytes, bool is_soft, unsigned *weight)
{
    const struct tn_counter *allocated = &engine->heap.shard.counters.bytes.out;
    const int64_t frees = frees_of(engine);
    const int64_t bytes_before = tn_counter_all(allocated);
    const uint64_t freed = run_pressure(engine, request, bytes, is_soft);

    if (tn_counter_all(allocated) < bytes_before) {
        *weight = 0;
    } else {
        *weight += frees_of(engine) == frees ? WEIGHT_NO_FREE : WEIGHT_IN_VAIN;
    }
    return *weight < WEIGHT_MOST ? freed : 0;
}

/* Nobody is asked for a request that a callback makes itself. */
static bool may_ask_for_room(const struct tn_engine *engine)
{
    return engine->pressures.count > 0 && !tn_call_back_is_inside(engine, TN_CALL_PRESSURE);
}

static enum tarn_status step_callbacks(struct tn_engine *engine, struct tn_request *request,
                                       struct tarn_error *error)
{
    if (engine->callbacks.count == 0) {
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

    if (limit_forbids(engine, request)) {
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

    for (; !request->pool->owner && p; p = p->next) {
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
            return TARN_OK;
        }
    }
    return TARN_ERR_NOT_FOUND;
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

static int64_t request_priority(const struct tn_request *request)
{
    return request->pool->owner ? request->pool->owner->priority : 0;
}

/* Releases the cache, as far as it may be taken for this request. */
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
        tn_gc_release_cached_for(engine, request_priority(request), request->stack, error);

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
 * streams may have used it, so the device is waited for. What the other pools have stays. */
static enum tarn_status release_unused_pools(struct tn_engine *engine, uint64_t stack,
                                             struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_NOT_FOUND;
    struct tn_private_pool *next;

    for (struct tn_private_pool *p = engine->heap.private_pools.first; p; p = next) {
        next = p->next;
        if (p->freeable && p->segment_count > 0) {
            st = tn_gc_release_cached(engine, p->id, stack, error);
            if (st) {
                return st;
            }
        }
    }
    return st;
}

static enum tarn_status step_release_pools(struct tn_engine *engine, struct tn_request *request,
                                           struct tarn_error *error)
{
    struct tn_private_pool *owner = request->pool->owner;

    if (tn_heap_is_capturing(&engine->heap)) {
        return TARN_ERR_NOT_FOUND; /* events cannot be waited for */
    }
    if (owner) {
        owner->pins++; /* it may have been released while the lock was dropped */
    }
    const enum tarn_status st = release_unused_pools(engine, request->stack, error);

    if (owner) {
        owner->pins--;
    }
    return st ? st : step_compact_ordered(engine, request, error);
}

/* Pages that other processes were given do not move; those that are free go back. */
static enum tarn_status step_release_shared(struct tn_engine *engine, struct tn_request *request,
                                            struct tarn_error *error)
{
    bool released = false;

    if (tn_heap_is_capturing(&engine->heap)) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st =
        tn_gc_release_shared(engine, request_priority(request), request_growth(engine, request),
                             request->stack, &released, error);

    if (st || !released) {
        return st ? st : TARN_ERR_NOT_FOUND;
    }
    return step_compact_ordered(engine, request, error);
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

/* ---- pools and pressure, which PyTorch does not have ---- */

/* For a segment, or for pages from wherever they can be had. */
static enum tarn_status ask_again(struct tn_engine *engine, struct tn_request *request,
                                  struct tarn_error *error)
{
    if (!request_is_compact(engine, request)) {
        return step_ask_device(engine, request, error);
    }
    return step_compact_ordered(engine, request, error);
}

/* A pool at its limit gives its own free memory back. */
static enum tarn_status step_trim_pool(struct tn_engine *engine, struct tn_request *request,
                                       struct tarn_error *error)
{
    struct tn_private_pool *owner = request->pool->owner;
    const uint64_t growth = request_growth(engine, request);

    if (!pool_forbids(engine, request) || !owner->open || growth > owner->limit) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st =
        tn_gc_trim_pool(engine, owner, owner->limit - growth, request->stack, error);

    return st ? st : ask_again(engine, request, error);
}

/* Releases what open pools with priorities above `from` and up to `to` have cached, one priority
 * after the other. */
static enum tarn_status release_pools(struct tn_engine *engine, struct tn_request *request,
                                      int64_t from, int64_t to, struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    if (tn_heap_is_capturing(&engine->heap)) {
        return st;
    }
    while (st == TARN_ERR_NOT_FOUND && tn_gc_next_priority(engine, &from) && from <= to) {
        bool released = false;

        st = tn_gc_release_priority(engine, from, request->stack, &released, error);
        if (st == TARN_OK) {
            st = released ? ask_again(engine, request, error) : TARN_ERR_NOT_FOUND;
        }
    }
    return st;
}

/* Pools that come before the default ones. */
static enum tarn_status step_release_lower(struct tn_engine *engine, struct tn_request *request,
                                           struct tarn_error *error)
{
    const int64_t priority = request_priority(request);

    return release_pools(engine, request, INT64_MIN, priority < 0 ? priority : 0, error);
}

/* And those that come after them. */
static enum tarn_status step_release_higher(struct tn_engine *engine, struct tn_request *request,
                                            struct tarn_error *error)
{
    return release_pools(engine, request, 0, request_priority(request), error);
}

/* A pool at its limit has its own pages moved, also after waiting for other streams; if they stay,
 * or that is not enough, it gives its free memory back. */
static enum tarn_status step_move_or_trim(struct tn_engine *engine, struct tn_request *request,
                                          struct tarn_error *error)
{
    if (!pool_forbids(engine, request)) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st = step_compact_ordered(engine, request, error);

    return st == TARN_ERR_NOT_FOUND ? step_trim_pool(engine, request, error) : st;
}

/* Within the soft limit: pages that only move do not count. */
static enum tarn_status compact_softly(struct tn_engine *engine, struct tn_request *request,
                                       struct tarn_error *error)
{
    const uint64_t limit = engine->heap.limit;

    engine->heap.limit = engine->soft_limit < limit ? engine->soft_limit : limit;
    const enum tarn_status st = step_compact(engine, request, error);

    engine->heap.limit = limit;
    return st;
}

/* Above the soft limit, unless the limit stops the request anyway. */
static enum tarn_status step_soft_limit(struct tn_engine *engine, struct tn_request *request,
                                        struct tarn_error *error)
{
    const bool compact = request_is_compact(engine, request);
    enum tarn_status st = TARN_ERR_NOT_FOUND;
    unsigned weight = 0;
    uint64_t missing;
    uint64_t freed;

    if (!may_ask_for_room(engine)) {
        return st;
    }
    const uint64_t after = engine->heap.reserved + request_growth(engine, request);

    if (after <= engine->soft_limit || (!compact && limit_forbids(engine, request))) {
        return st;
    }
    if (compact) {
        st = compact_softly(engine, request, error);
    }
    missing = after - engine->soft_limit;
    while (st == TARN_ERR_NOT_FOUND && missing > 0 &&
           (freed = pressure_round(engine, request, missing, true, &weight)) > 0) {
        missing -= freed < missing ? freed : missing;
        st = tn_ladder_prepare(engine, request, error);
        if (st == TARN_OK && !tn_best_fit(&engine->heap, request)) {
            st = TARN_ERR_NOT_FOUND;
        }
    }
    return st;
}

/* With what has just been freed. */
static enum tarn_status try_again(struct tn_engine *engine, struct tn_request *request,
                                  struct tarn_error *error)
{
    enum tarn_status st = tn_ladder_prepare(engine, request, error);

    if (st == TARN_OK && !tn_best_fit(&engine->heap, request)) {
        st = ask_again(engine, request, error);
        st = st == TARN_ERR_NOT_FOUND ? step_trim_pool(engine, request, error) : st;
        st = st == TARN_ERR_NOT_FOUND ? release_cached(engine, request, error) : st;
        st = st == TARN_OK && !request->block ? ask_again(engine, request, error) : st;
    }
    return st;
}

/* Nothing that is cached helps: others have to free something. */
static enum tarn_status step_pressure(struct tn_engine *engine, struct tn_request *request,
                                      struct tarn_error *error)
{
    const uint64_t bytes = request_growth(engine, request);
    enum tarn_status st = TARN_ERR_NOT_FOUND;
    unsigned weight = 0;

    while (st == TARN_ERR_NOT_FOUND && may_ask_for_room(engine) &&
           pressure_round(engine, request, bytes, false, &weight) > 0) {
        request->block = NULL;
        st = try_again(engine, request, error);
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
    step_soft_limit,       /* ask for room */
    step_ask_device,       /* for a segment, or for pages */
    step_trim_pool,        /* at its own limit, and ask the device again */
    step_borrow,           /* from pools that allow it */
    step_release_lower,    /* what pools cache, and ask the device again */
    step_release_oversize, /* and ask the device again */
    step_release_cached,   /* and ask the device again */
    step_release_higher,   /* what pools cache, and ask the device again */
    step_pressure,         /* ask for room, and for a segment again */
    NULL,
};

/* Under the compact policy, for requests that expandable segments may serve. */
static const ladder_step compact_ladder[] = {
    step_soft_limit,      /* ask for room */
    step_compact,         /* free pages, or new ones */
    step_move_or_trim,    /* a pool at its own limit */
    step_compact_ordered, /* pages of other streams, which the stream waits for */
    step_wait,            /* for blocks in use on other streams */
    step_callbacks,       /* that may free something */
    step_compact_ordered, /* with that */
    step_release_shared,  /* free pages that other processes were given, and once more */
    step_borrow,          /* from pools that allow it */
    step_release_lower,   /* what pools cache, and once more */
    step_release_pools,   /* that nobody uses any more, and once more */
    step_release_higher,  /* what pools cache, and once more */
    step_pressure,        /* ask for room, and once more */
    NULL,
};

static enum tarn_status climb(struct tn_engine *engine, struct tn_request *request,
                              const ladder_step *step, struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    for (; st == TARN_ERR_NOT_FOUND && *step; step++) {
        st = (*step)(engine, request, error);
    }
    return st;
}

/* The same for a caller who reads errors: a step's is one only if no later step succeeds. */
static TN_NOINLINE enum tarn_status climb_reporting(struct tn_engine *engine,
                                                    struct tn_request *request,
                                                    const ladder_step *step,
                                                    struct tarn_error *error)
{
    struct tarn_error failure;

    failure.status = TARN_OK;
    const enum tarn_status st = climb(engine, request, step, &failure);

    if (st && failure.status) {
        *error = failure;
    }
    return st;
}

enum tarn_status tn_ladder_climb(struct tn_engine *engine, struct tn_request *request,
                                 struct tarn_error *error)
{
    const bool compact = request_is_compact(engine, request);
    const ladder_step *first = compact ? compact_ladder : ladder;
    const uint64_t begin_ns = compact ? tn_clock_now_ns() : 0;
    const uint64_t pages_before = tn_compact_pages(&engine->compact);

    request->segment_size = tn_segment_size(request->size, &engine->heap.config);
    const enum tarn_status st = error ? climb_reporting(engine, request, first, error)
                                      : climb(engine, request, first, NULL);

    if (compact && (st || tn_compact_pages(&engine->compact) > pages_before)) {
        tn_compact_measured(&engine->compact, tn_clock_now_ns() - begin_ns);
    }
    return st;
}

bool tn_ladder_is_limited(const struct tn_engine *engine, const struct tn_request *request,
                          bool soft)
{
    const uint64_t after = engine->heap.reserved + request_growth(engine, request);

    return after > engine->heap.limit || (soft && after > engine->soft_limit) ||
           pool_forbids(engine, request);
}

/* Even if every free page moved to where it is wanted. */
static bool pages_cannot_suffice(const struct tn_engine *engine, const struct tn_request *request,
                                 bool soft)
{
    const uint64_t active = (uint64_t)tn_counters_active_bytes(&engine->heap.shard.counters);
    const uint64_t limit = engine->heap.limit;

    return active + request->size >
           (soft && engine->soft_limit < limit ? engine->soft_limit : limit);
}

enum tarn_status tn_ladder_grow(struct tn_engine *engine, struct tn_request *request, bool soft,
                                struct tarn_error *error)
{
    request->segment_size = tn_segment_size(request->size, &engine->heap.config);
    if (request_is_compact(engine, request)) {
        if (pages_cannot_suffice(engine, request, soft)) {
            return TARN_ERR_NOT_FOUND;
        }
        return soft ? compact_softly(engine, request, error) : step_compact(engine, request, error);
    }
    if (soft && engine->heap.reserved + request->segment_size > engine->soft_limit) {
        return TARN_ERR_NOT_FOUND;
    }
    return step_ask_device(engine, request, error);
}
