/* SPDX-License-Identifier: MIT */
/*
 * The caching engine reads as two lists of steps.
 *
 * Allocating: complete the frees whose events are done; round the size; find the pool; then climb
 * the ladder below until a step gives a block; split it if the rest is worth keeping; hand out the
 * front.
 *
 * Freeing: take the block out of the pointer map; if other streams used it, record events and let
 * it wait; else merge it with its free neighbours and file it in its free set.
 */
#include "alloc/engine_native.h"

#include "alloc/core_check.h"
#include "alloc/expandable.h"
#include "alloc/gc.h"
#include "alloc/oom.h"
#include "alloc/plain_memory.h"
#include "alloc/request.h"
#include "alloc/segment.h"
#include "alloc/size_class.h"
#include "base/host_mem.h"
#include "base/probe.h"

/* ---- choosing among free blocks ---- */

/* What a block of a growing segment can become: itself and the unmapped range behind it. */
static uint64_t block_room(const struct tn_block *block)
{
    return block->size + (block->next && !block->next->mapped ? block->next->size : 0);
}

/* Best fit among growing segments is the one with the least room to grow: goes on while the next
 * block has less. */
static struct tn_block *prefer_less_room(const struct tn_free_set *set, struct tn_block *block)
{
    struct tn_block *next = tn_free_set_next(set, block);

    while (block->expandable && next && block_room(next) < block_room(block)) {
        block = next;
        next = tn_free_set_next(set, block);
    }
    return block;
}

/* Whether max_split_size lets this block serve the request. No further block is tried if not. */
static bool block_may_serve(const struct tn_engine *engine, const struct tn_block *block,
                            uint64_t size)
{
    const uint64_t max_split = engine->config.max_split_size;

    if (size < max_split) {
        return block->size < max_split;
    }
    return block->size < size + engine->config.max_non_split_rounding;
}

/* PyTorch's get_free_block. */
static enum tarn_status step_reuse(struct tn_engine *engine, struct tn_request *request,
                                   struct tarn_error *error)
{
    struct tn_free_set *set = request->set;

    (void)error;
    if (tn_unlikely(tn_engine_collects_garbage(engine))) {
        request->pool->find_count++;
    }
    struct tn_block *block = tn_free_set_find(set, request->size);

    if (block && block->expandable) {
        if (request->grows) {
            block = prefer_less_room(set, block);
        } else {
            while (block && block->expandable) {
                block = tn_free_set_next(set, block);
            }
        }
    }
    if (!block || !block_may_serve(engine, block, request->size)) {
        return TARN_ERR_NOT_FOUND;
    }
    tn_free_set_remove(set, block);
    request->block = block;
    return TARN_OK;
}

/* ---- asking the device ---- */

/* PyTorch's alloc_block. A full device is "not found", so that the ladder goes on. */
static enum tarn_status request_grow(struct tn_engine *engine, struct tn_request *request,
                                     struct tarn_error *error)
{
    enum tarn_status st;

    if (tn_engine_limit_is_set(engine) &&
        engine->reserved + request->segment_size > engine->limit) {
        return TARN_ERR_NOT_FOUND;
    }
    if (request->grows) {
        st = tn_expandable_alloc(engine, request->set, request->size, request->stack,
                                 &request->block, error);
    } else {
        st = tn_segment_alloc(engine, request->set, request->segment_size, request->stack,
                              &request->block, error);
    }
    return st == TARN_ERR_OUT_OF_MEMORY ? TARN_ERR_NOT_FOUND : st;
}

/* Runs the callbacks without the lock, so that they may free blocks. The pool is pinned meanwhile.
 * */
static bool run_callbacks(struct tn_engine *engine, const struct tn_request *request)
{
    struct tn_private_pool *owner = request->pool->owner;
    const unsigned count = engine->callback_count;
    bool helped = false;

    if (owner) {
        owner->pins++;
    }
    tn_lock_release(&engine->lock);
    for (unsigned i = 0; i < count; i++) {
        const struct tn_memory_callback *callback = &engine->callbacks[i];

        helped =
            callback->call(callback->context, engine->owner, request->requested, request->stream) ||
            helped;
    }
    tn_lock_acquire(&engine->lock);
    if (owner) {
        owner->pins--;
    }
    return helped;
}

static enum tarn_status step_callbacks(struct tn_engine *engine, struct tn_request *request,
                                       struct tarn_error *error)
{
    if (engine->callback_count == 0 || !run_callbacks(engine, request)) {
        return TARN_ERR_NOT_FOUND;
    }
    return step_reuse(engine, request, error);
}

/* Pools that may help out serve the request from a free block of theirs, as if it had been routed
 * to them. Not for requests of private pools. */
static enum tarn_status step_borrow(struct tn_engine *engine, struct tn_request *request,
                                    struct tarn_error *error)
{
    const bool small = request->pool->is_small;
    struct tn_private_pool *p = engine->private_pools.first;
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    for (; !request->pool->owner && p && st == TARN_ERR_NOT_FOUND; p = p->next) {
        if (!p->use_on_oom || p->use_count == 0) {
            continue;
        }
        struct tn_request borrowed = *request;

        borrowed.grows = false; /* PyTorch lends plain segments only */
        borrowed.pool = small ? &p->small : &p->large;
        borrowed.set = tn_pool_get_set(borrowed.pool, request->stream);
        if (!borrowed.set) {
            return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for a pool");
        }
        st = step_reuse(engine, &borrowed, error);
        if (st == TARN_OK) {
            *request = borrowed;
        }
    }
    return st;
}

static enum tarn_status step_collect_garbage(struct tn_engine *engine, struct tn_request *request,
                                             struct tarn_error *error)
{
    if (!tn_engine_collects_garbage(engine)) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st = tn_gc_collect(engine, request->stack, error);

    return st ? st : TARN_ERR_NOT_FOUND;
}

/* With throw_on_cudamalloc_oom, what the limit forbids is refused before anything is given back or
 * the device is asked. */
static enum tarn_status step_reject(struct tn_engine *engine, struct tn_request *request,
                                    struct tarn_error *error)
{
    (void)error;
    request->rejected = engine->config.throw_on_device_oom && tn_engine_limit_is_set(engine) &&
                        engine->reserved + request->segment_size > engine->limit;
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
    return request_grow(engine, request, error);
}

static enum tarn_status step_release_cached(struct tn_engine *engine, struct tn_request *request,
                                            struct tarn_error *error)
{
    if (engine->private_pools.route_count > 0) { /* a capture may be under way: no waiting for
                                                    events */
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st =
        tn_gc_release_cached(engine, (struct tarn_pool_id){0, 0}, request->stack, error);

    if (st) {
        return st;
    }
    engine->counters.stats.num_alloc_retries++;
    return request_grow(engine, request, error);
}

/* What is tried for a request, in order, until a step gives a block. TARN_ERR_NOT_FOUND means to go
 * on, any other failure ends the request. */
static const struct ladder_step {
    const char *name;
    enum tarn_status (*run)(struct tn_engine *engine, struct tn_request *request,
                            struct tarn_error *error);
} ladder[] = {
    {"reuse a free block", step_reuse},
    {"refuse what the limit forbids, if asked to", step_reject},
    {"ask the callbacks to free something", step_callbacks},
    {"collect garbage above the threshold", step_collect_garbage},
    {"ask the device", request_grow},
    {"borrow from pools that allow it", step_borrow},
    {"release oversize blocks and ask again", step_release_oversize},
    {"release the whole cache and ask again", step_release_cached},
};

enum {
    LADDER_STEPS = sizeof ladder / sizeof ladder[0]
};

static enum tarn_status request_climb(struct tn_engine *engine, struct tn_request *request,
                                      struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_NOT_FOUND;

    for (unsigned i = 0; st == TARN_ERR_NOT_FOUND && i < LADDER_STEPS; i++) {
        st = ladder[i].run(engine, request, error);
    }
    return st;
}

/* ---- handing out ---- */

/* Free parts of split segments: a fresh split adds one, a further split shrinks one, using a whole
 * part removes one. Growing segments are not counted. */
static void count_split(struct tn_engine *engine, const struct tn_block *block, bool already_split,
                        const struct tn_block *rest)
{
    struct tn_counters *counters = &engine->counters;
    const bool small = block->set->pool->is_small;

    if (block->expandable) {
        return;
    }
    if (rest && !already_split) {
        tn_counters_increase(counters, TARN_STAT_INACTIVE_SPLIT_BYTES, small, rest->size);
        tn_counters_increase(counters, TARN_STAT_INACTIVE_SPLIT, small, 1);
    } else if (already_split) {
        tn_counters_decrease(counters, TARN_STAT_INACTIVE_SPLIT_BYTES, small, block->size);
        if (!rest) {
            tn_counters_decrease(counters, TARN_STAT_INACTIVE_SPLIT, small, 1);
        }
    }
}

static void count_hand_out(struct tn_engine *engine, const struct tn_block *block)
{
    struct tn_counters *counters = &engine->counters;
    const bool small = block->set->pool->is_small;

    tn_counters_increase(counters, TARN_STAT_ALLOCATION, small, 1);
    tn_counters_increase(counters, TARN_STAT_ALLOCATED_BYTES, small, block->size);
    tn_counters_increase(counters, TARN_STAT_ACTIVE, small, 1);
    tn_counters_increase(counters, TARN_STAT_ACTIVE_BYTES, small, block->size);
    tn_counters_increase(counters, TARN_STAT_REQUESTED_BYTES, small, block->requested_size);
    if (block->size >= engine->config.max_split_size) {
        tn_stat_increase(&counters->stats.oversize_allocations, 1);
    }
}

void tn_native_hand_out(struct tn_engine *engine, struct tn_block *block, uint64_t size,
                        uint64_t requested, bool split, uint64_t stack)
{
    const bool already_split = tn_block_is_split(block);
    struct tn_block *rest = NULL;

    if (split) {
        rest = tn_engine_take_spare(engine);
        tn_block_split(block, size, rest);
        tn_engine_file(engine, rest);
    }
    count_split(engine, block, already_split, rest);
    block->allocated = true;
    block->requested_size = requested;
    block->u.stack = stack;
    tn_ptr_map_insert(&engine->map, block);
    tn_engine_emit(engine, TARN_ACTION_ALLOC, block->address, requested, block->set->stream,
                   block->set->pool, stack);
    count_hand_out(engine, block);
}

static bool request_splits(const struct tn_engine *engine, const struct tn_request *request)
{
    const struct tn_private_pool *owner = request->pool->owner;

    if (owner && owner->no_split) {
        return false;
    }
    return tn_should_split(request->block->size, request->size, request->pool->is_small,
                           request->grows, &engine->config);
}

/* ---- allocating ---- */

/* Host memory for everything that happens after a block was found. */
static enum tarn_status request_prepare(struct tn_engine *engine, struct tn_request *request,
                                        struct tarn_error *error)
{
    if (tn_unlikely(engine->unfiled != NULL)) {
        tn_engine_file_pending(engine);
    }
    request->set = tn_pool_get_set(request->pool, request->stream);
    if (!request->set || !tn_map_reserve(&engine->map, 1) || tn_engine_reserve_spares(engine, 1)) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the record of a block");
    }
    return TARN_OK;
}

static enum tarn_status alloc_locked(struct tn_engine *engine, struct tn_request *request,
                                     struct tarn_oom *oom, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    if (tn_likely(engine->private_pools.route_count == 0)) {
        st = tn_stream_waits_process(engine, request->stack, error);
    } else {
        st = tn_stream_waits_reclaim(engine, request->stream, request->stack, error);
    }
    request->size = tn_round_size(request->requested, &engine->config);
    request->grows = engine->config.expandable_segments;
    request->segment_size = tn_segment_size(request->size, &engine->config);
    request->pool = tn_private_pool_route(engine, tn_size_is_small(request->size), request->stream);
    if (st == TARN_OK) {
        st = request_prepare(engine, request, error);
    }
    if (st == TARN_OK) {
        st = request_climb(engine, request, error);
    }
    if (st == TARN_ERR_NOT_FOUND || st == TARN_ERR_OUT_OF_MEMORY) {
        return tn_oom_report(engine, request, oom, error);
    }
    if (st == TARN_OK) {
        /* A step may have used up what was put by, or dropped the lock. */
        st = request_prepare(engine, request, error);
        if (st) {
            tn_engine_file(engine, request->block);
            return st;
        }
        tn_native_hand_out(engine, request->block, request->size, request->requested,
                           request_splits(engine, request), request->stack);
    }
    return st;
}

enum tarn_status tn_native_alloc(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                 tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct tn_request request = {.requested = size, .stream = stream};
    struct tarn_oom oom = {0};

    if (size >= TN_MAX_REQUEST) {
        return tn_oom_absurd(error);
    }
    request.stack = tn_engine_capture(engine, TARN_CONTEXT_STATE);
    tn_lock_acquire(&engine->lock);
    const enum tarn_status st = alloc_locked(engine, &request, &oom, error);
    const unsigned observers = engine->observer_count;

    tn_core_assert(engine);
    if (st == TARN_OK) {
        tn_assert(request.block);
        *ptr_out = request.block->address;
    }
    tn_lock_release(&engine->lock);
    TN_PROBE4(malloc, st ? 0 : *ptr_out, engine->device->ordinal, size, stream);
    if (tn_unlikely(st == TARN_ERR_OUT_OF_MEMORY)) {
        for (unsigned i = 0; i < observers; i++) {
            engine->observers[i].call(engine->observers[i].context, &oom);
        }
    }
    return st;
}

/* ---- freeing ---- */

/* The free itself, when it is settled what a block with uses waits for. `slot` is the block's place
 * in the pointer map. */
static void free_settled(struct tn_engine *engine, struct tn_block *block, uint64_t *slot,
                         bool waits, uint64_t stack)
{
    const bool small = block->set->pool->is_small;

    tn_assert(block->allocated);
    tn_prefetch(block->prev); /* merging will look at both */
    tn_prefetch(block->next);
    block->allocated = false;
    tn_map_remove(&engine->map, slot);
    tn_counters_decrease(&engine->counters, TARN_STAT_ALLOCATION, small, 1);
    tn_counters_decrease(&engine->counters, TARN_STAT_ALLOCATED_BYTES, small, block->size);
    tn_engine_emit(engine, TARN_ACTION_FREE_REQUESTED, block->address, block->requested_size,
                   block->set->stream, block->set->pool, stack ? stack : block->u.stack);
    if (block->size >= engine->config.max_split_size) {
        tn_stat_decrease(&engine->counters.stats.oversize_allocations, 1);
    }
    if (!waits) {
        tn_engine_complete_free(engine, block, stack);
    }
}

static enum tarn_status free_found(struct tn_engine *engine, struct tn_block *block, uint64_t *slot,
                                   uint64_t stack, struct tarn_error *error)
{
    const bool waits = block->uses != 0;

    if (tn_unlikely(waits)) {
        const enum tarn_status st =
            tn_stream_use_release(engine, block, engine->private_pools.route_count > 0, error);

        if (st) {
            return st;
        }
    }
    free_settled(engine, block, slot, waits, stack);
    return TARN_OK;
}

enum tarn_status tn_native_free_locked(struct tn_engine *engine, struct tn_block *block,
                                       uint64_t stack, struct tarn_error *error)
{
    return free_found(engine, block, tn_map_find(&engine->map, block->address), stack, error);
}

void tn_native_free_surely(struct tn_engine *engine, struct tn_block *block, uint64_t stack)
{
    const enum tarn_status st = tn_native_free_locked(engine, block, stack, NULL);

    if (st) { /* only for want of an event: it is recorded later */
        tn_stream_use_defer(engine, block);
        free_settled(engine, block, tn_map_find(&engine->map, block->address), true, stack);
    }
}

enum tarn_status tn_native_free(struct tn_engine *engine, tarn_ptr ptr, struct tarn_error *error)
{
    const uint64_t stack = tn_engine_capture(engine, TARN_CONTEXT_ALL);
    enum tarn_status st;

    TN_PROBE1(free, ptr);
    tn_lock_acquire(&engine->lock);
    uint64_t *slot = tn_map_find(&engine->map, ptr);

    st = slot ? free_found(engine, tn_ptr_map_block(slot), slot, stack, error)
              : tn_pointer_unknown(ptr, error);
    tn_core_assert(engine);
    tn_lock_release(&engine->lock);
    return st;
}

/* ---- the rest ---- */

enum tarn_status tn_native_record_stream(struct tn_engine *engine, tarn_ptr ptr, tarn_stream stream,
                                         struct tarn_error *error)
{
    enum tarn_status st;

    tn_lock_acquire(&engine->lock);
    struct tn_block *block = tn_ptr_map_find(&engine->map, ptr);

    if (!block) {
        st = tn_pointer_unknown(ptr, error);
    } else {
        st = tn_stream_use_record(engine, block, stream, engine->private_pools.route_count > 0);
        if (st) {
            (void)tn_fail(error, st, "no host memory to record a stream");
        }
    }
    tn_lock_release(&engine->lock);
    return st;
}

static void engine_trim(struct tn_engine *engine)
{
    tn_pool_trim(&engine->small);
    tn_pool_trim(&engine->large);
    for (struct tn_private_pool *p = engine->private_pools.first; p; p = p->next) {
        tn_pool_trim(&p->small);
        tn_pool_trim(&p->large);
    }
}

enum tarn_status tn_native_empty_cache(struct tn_engine *engine, struct tarn_pool_id id,
                                       struct tarn_error *error)
{
    const uint64_t stack = tn_engine_capture(engine, TARN_CONTEXT_ALL);

    tn_lock_acquire(&engine->lock);
    const enum tarn_status st = tn_gc_release_cached(engine, id, stack, error);

    engine_trim(engine);
    tn_core_assert(engine);
    tn_lock_release(&engine->lock);
    return st;
}

enum tarn_status tn_native_base_allocation(struct tn_engine *engine, tarn_ptr ptr,
                                           tarn_ptr *base_out, uint64_t *size_out,
                                           struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    tn_lock_acquire(&engine->lock);
    if (tn_ptr_map_find(&engine->map, ptr)) {
        const struct tn_segment *segment = tn_segment_find(engine, ptr);

        if (base_out) {
            *base_out = segment->address;
        }
        if (size_out) {
            *size_out = segment->size;
        }
    } else {
        st = tn_pointer_unknown(ptr, error);
    }
    tn_lock_release(&engine->lock);
    return st;
}

/* Under the lock, or before anybody else knows the engine. */
static void engine_apply_fraction(struct tn_engine *engine, double fraction)
{
    /* Truncated as PyTorch truncates it; a fraction of 1 takes the limit away. */
    engine->limit = fraction < 1.0 ? (uint64_t)(fraction * (double)engine->device->total_memory)
                                   : TARN_SIZE_UNLIMITED;
}

enum tarn_status tn_native_set_fraction(struct tn_engine *engine, double fraction,
                                        struct tarn_error *error)
{
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "invalid fraction:%g. Please set within [0, 1].", fraction);
    }
    tn_lock_acquire(&engine->lock);
    engine_apply_fraction(engine, fraction);
    tn_lock_release(&engine->lock);
    return TARN_OK;
}

static uint64_t pool_largest(const struct tn_pool *pool)
{
    uint64_t largest = 0;

    for (uint32_t i = 0; i < pool->count; i++) {
        const struct tn_block *last = tn_free_set_last(pool->sets[i]);

        largest = last && last->size > largest ? last->size : largest;
    }
    return largest;
}

enum tarn_status tn_native_cache_info(struct tn_engine *engine, uint64_t *largest,
                                      struct tarn_error *error)
{
    uint64_t total;
    enum tarn_status st = TARN_OK;
    uint64_t found = *largest;

    tn_lock_acquire(&engine->lock);
    if (found == 0) {
        st = engine->device->ops->memory_info(engine->device, &found, &total);
    }
    if (st) {
        (void)tn_engine_device_failed(engine, st, "asking for free memory", error);
    } else {
        const struct tn_pool *pools[] = {&engine->small, &engine->large};

        for (int i = 0; i < 2; i++) {
            const uint64_t size = pool_largest(pools[i]);

            found = size > found ? size : found;
        }
        for (const struct tn_private_pool *p = engine->private_pools.first; p; p = p->next) {
            const uint64_t small = pool_largest(&p->small);
            const uint64_t large = pool_largest(&p->large);

            found = small > found ? small : found;
            found = large > found ? large : found;
        }
        *largest = found;
    }
    tn_lock_release(&engine->lock);
    return st;
}

void tn_native_init(struct tn_engine *engine, struct tarn_device *device,
                    const struct tarn_config *config)
{
    *engine = (struct tn_engine){
        .owner = engine->owner,
        .device = device,
        .config = *config,
        .limit = TARN_SIZE_UNLIMITED,
    };
    if (config->memory_fraction_given) {
        engine_apply_fraction(engine, config->memory_fraction);
    }
    tn_counters_init(&engine->counters, config->max_split_size);
    tn_segments_init(&engine->segments);
    tn_pool_init(&engine->small, true, NULL);
    tn_pool_init(&engine->large, false, NULL);
    tn_lock_init(&engine->lock, TN_LOCK_ALLOCATOR);
}

/* Frees every node of the segment and the memory behind it, whatever state its blocks are in. */
static void segment_abandon(struct tn_engine *engine, struct tn_segment *segment)
{
    struct tn_block *block = segment->first;

    while (block) {
        struct tn_block *next = block->next;

        if (tn_block_is_idle(block)) {
            tn_engine_unfile(engine, block);
        }
        tn_block_destroy(&engine->slab, block);
        block = next;
    }
    if (segment->expandable) {
        tn_expandable_destroy(engine, segment);
    } else {
        (void)engine->device->ops->free(engine->device, segment->address);
    }
    tn_tree_remove(&engine->segments, &segment->node);
    tn_host_free(segment, sizeof *segment);
}

void tn_native_fini(struct tn_engine *engine)
{
    struct tn_segment *segment;

    tn_stream_waits_fini(engine);
    while ((segment = tn_segment_first(engine)) != NULL) {
        segment_abandon(engine, segment);
    }
    tn_private_pools_fini(engine);
    tn_pool_fini(&engine->small);
    tn_pool_fini(&engine->large);
    while (engine->spares) {
        tn_block_destroy(&engine->slab, tn_engine_take_spare(engine));
    }
    tn_block_slab_fini(&engine->slab);
    tn_map_fini(&engine->map);
    tn_lock_fini(&engine->lock);
}
