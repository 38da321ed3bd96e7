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
 *
 * Most calls need few of these steps: a free block fits, nobody waits or listens. They go the short
 * way, which is made of the same parts; what it cannot do goes the long way from the start.
 */
#include "alloc/engine/engine_native.h"

#include "alloc/engine/call_back.h"
#include "alloc/engine/core_check.h"
#include "alloc/engine/gc.h"
#include "alloc/engine/oom.h"
#include "alloc/engine/plain_memory.h"
#include "alloc/engine/request.h"
#include "alloc/engine/size_class.h"
#include "alloc/pool/expandable.h"
#include "alloc/pool/segment.h"
#include "base/host_mem.h"
#include "base/probe.h"

#include <inttypes.h>

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

/* The best fit is part of a growing segment. */
static struct tn_block *choose_growing(const struct tn_free_set *set, struct tn_block *block,
                                       bool grows)
{
    if (grows) {
        return prefer_less_room(set, block);
    }
    while (block && block->expandable) {
        block = tn_free_set_next(set, block);
    }
    return block;
}

/* PyTorch's get_free_block. Inline, as hand_out: an allocation that is no step is one function. */
static TN_INLINE enum tarn_status reuse_block(struct tn_engine *engine, struct tn_request *request)
{
    struct tn_free_set *set = request->set;

    if (tn_unlikely(tn_engine_collects_garbage(engine))) {
        request->pool->find_count++;
    }
    struct tn_block *block = tn_free_set_find(set, request->size);

    if (block && block->expandable) {
        block = choose_growing(set, block, request->grows);
    }
    if (!block || !block_may_serve(engine, block, request->size)) {
        return TARN_ERR_NOT_FOUND;
    }
    tn_free_set_remove(set, block);
    request->block = block;
    return TARN_OK;
}

static enum tarn_status step_reuse(struct tn_engine *engine, struct tn_request *request,
                                   struct tarn_error *error)
{
    (void)error;
    return reuse_block(engine, request);
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
    engine->counters.plain.num_alloc_retries++;
    return request_grow(engine, request, error);
}

/* What is tried for a request that no free block fits, in order, until a step gives a block.
 * TARN_ERR_NOT_FOUND means to go on, any other failure ends the request. */
static const struct ladder_step {
    const char *name;
    enum tarn_status (*run)(struct tn_engine *engine, struct tn_request *request,
                            struct tarn_error *error);
} ladder[] = {
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

static enum tarn_status ladder_climb(struct tn_engine *engine, struct tn_request *request,
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
static struct tn_split_change split_change(const struct tn_block *block, bool already_split,
                                           const struct tn_block *rest)
{
    if (block->expandable) {
        return (struct tn_split_change){0};
    }
    const int64_t rest_size = rest ? (int64_t)rest->size : 0;

    return (struct tn_split_change){
        .bytes = already_split ? -(int64_t)block->size : rest_size,
        .blocks = (int32_t)(rest != NULL) - (int32_t)already_split,
    };
}

static void count_split(struct tn_counters *counters, unsigned pool, int64_t blocks, int64_t bytes)
{
    tn_counter_change(&counters->split, pool, blocks);
    tn_counter_change(&counters->split_bytes, pool, bytes);
}

/* What a block adds to the counters when it is handed out; sends the event. */
static TN_INLINE void announce(struct tn_engine *engine, const struct tn_block *block,
                               unsigned pool, uint64_t stack)
{
    tn_engine_emit(engine, TARN_ACTION_ALLOC, block->address, block->requested_size,
                   block->set->stream, block->set->pool, stack);
    tn_counters_hand_out(&engine->counters, pool, block->size, block->requested_size);
    if (tn_unlikely(block->size >= engine->config.max_split_size)) {
        tn_stat_increase(&engine->counters.plain.oversize_allocations, 1);
    }
}

static TN_INLINE struct tn_handed_out hand_out(struct tn_engine *engine, struct tn_block *block,
                                               uint64_t size, uint64_t requested, bool split,
                                               uint64_t stack)
{
    const unsigned pool = tn_counter_pool(block->set->pool->is_small);
    const bool already_split = tn_block_is_split(block);
    struct tn_block *rest = NULL;

    if (split) {
        rest = tn_engine_take_spare(engine);
        tn_block_split(block, size, rest);
        tn_engine_file(engine, rest);
    }
    const struct tn_split_change change = split_change(block, already_split, rest);

    count_split(&engine->counters, pool, change.blocks, change.bytes);
    block->allocated = true;
    block->requested_size = requested;
    block->u.stack = stack;
    const uint64_t place = tn_ptr_map_insert(&engine->map, block);

    announce(engine, block, pool, stack);
    return (struct tn_handed_out){.place = place, .change = change};
}

struct tn_handed_out tn_native_hand_out(struct tn_engine *engine, struct tn_block *block,
                                        uint64_t size, uint64_t requested, bool split,
                                        uint64_t stack)
{
    return hand_out(engine, block, size, requested, split, stack);
}

static inline bool request_splits(const struct tn_engine *engine, const struct tn_request *request)
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
static TN_INLINE enum tarn_status
request_prepare(struct tn_engine *engine, struct tn_request *request, struct tarn_error *error)
{
    if (tn_unlikely(engine->unfiled != NULL)) {
        tn_engine_file_pending(engine);
    }
    if (tn_unlikely(tn_stream_is_per_thread(engine->device, request->stream))) {
        return tn_stream_refuse_per_thread(request->stream, error);
    }
    request->set = tn_pool_get_set(request->pool, request->stream);
    if (!request->set || !tn_ptr_map_reserve(&engine->map, 1) ||
        !tn_engine_reserve_spares(engine, 1)) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for the record of a block");
    }
    return TARN_OK;
}

/* An allocation from a free block becomes a step of its stream's trail. */
static void request_leave_step(struct tn_trail *trail, const struct tn_request *request, bool split,
                               const struct tn_handed_out *out)
{
    struct tn_trail_step *step = tn_trail_add(trail);
    struct tn_block *block = request->block;

    step->block = block;
    step->address = block->address;
    step->place = out->place;
    step->requested = request->requested;
    step->stream = request->stream;
    step->behind = split ? &block->next->requested_size : &trail->nothing;
    step->split_bytes = out->change.bytes;
    step->split_blocks = (int16_t)out->change.blocks;
    step->pool = (uint8_t)tn_counter_pool(request->pool->is_small);
}

/* Hands out the block that was found. `trail` is the stream's; if things are calm the allocation
 * may become a step of it. */
static TN_INLINE struct tarn_handle request_finish(struct tn_engine *engine,
                                                   const struct tn_request *request,
                                                   struct tn_trail *trail, bool calm)
{
    const bool split = request_splits(engine, request);
    const struct tn_handed_out out =
        hand_out(engine, request->block, request->size, request->requested, split, request->stack);

    if (calm && request->block->size < engine->config.max_split_size &&
        tn_trail_wants_step(trail)) {
        request_leave_step(trail, request, split, &out);
    } else {
        tn_engine_forget_trail(engine, trail);
    }
    return (struct tarn_handle){.ptr = request->block->address, .place = out.place};
}

/* A step of the ladder may have used up what was put by, or dropped the lock. */
static TN_NOINLINE enum tarn_status request_prepare_again(struct tn_engine *engine,
                                                          struct tn_request *request,
                                                          struct tarn_error *error)
{
    return request_prepare(engine, request, error);
}

/* No free block fits: climbs the ladder. */
static TN_COLD enum tarn_status request_climb(struct tn_engine *engine, struct tn_request *request,
                                              struct tarn_error *error)
{
    tn_engine_forget(engine);
    request->segment_size = tn_segment_size(request->size, &engine->config);
    const enum tarn_status st = ladder_climb(engine, request, error);

    if (st) {
        return st;
    }
    const enum tarn_status prepared = request_prepare_again(engine, request, error);

    if (prepared) {
        tn_engine_file(engine, request->block);
    }
    return prepared;
}

/* The pool that serves the request. */
static struct tn_pool *route(struct tn_engine *engine, bool small, tarn_stream stream)
{
    if (tn_unlikely(engine->private_pools.route_count > 0)) {
        return tn_private_pool_route(engine, small, stream);
    }
    return small ? &engine->small : &engine->large;
}

/* What other streams have done with since: before a free block is looked for. */
static TN_NOINLINE enum tarn_status alloc_looks_at_events(struct tn_engine *engine,
                                                          const struct tn_request *request,
                                                          struct tarn_error *error)
{
    if (engine->private_pools.route_count > 0) {
        return tn_stream_waits_reclaim(engine, request->stream, request->stack, error);
    }
    return engine->waits.pending > 0 || engine->waits.deferred_count > 0
               ? tn_stream_waits_process(engine, request->stack, error)
               : TARN_OK;
}

/* Looks for a free block that fits; TARN_ERR_NOT_FOUND if there is none. */
static TN_INLINE enum tarn_status request_find(struct tn_engine *engine, struct tn_request *request,
                                               struct tarn_error *error)
{
    request->size = tn_round_size(request->requested, &engine->config);
    request->grows = engine->config.expandable_segments;
    request->pool = route(engine, tn_size_is_small(request->size), request->stream);
    const enum tarn_status st = request_prepare(engine, request, error);

    return tn_unlikely(st) ? st : reuse_block(engine, request);
}

static inline enum tarn_status alloc_locked(struct tn_engine *engine, struct tn_request *request,
                                            bool calm, struct tarn_handle *handle_out,
                                            struct tarn_error *error)
{
    enum tarn_status st = calm ? TARN_OK : alloc_looks_at_events(engine, request, error);

    if (tn_likely(st == TARN_OK)) {
        st = request_find(engine, request, error);
    }
    if (tn_unlikely(st == TARN_ERR_NOT_FOUND)) {
        st = request_climb(engine, request, error);
        calm = false;
    }
    if (tn_likely(st == TARN_OK)) {
        struct tn_trail *trail = tn_engine_trail(engine, request->stream);

        *handle_out = request_finish(engine, request, trail, calm);
    }
    return st;
}

/* Without the lock, and not for a request that an observer makes. */
static void call_observers(const struct tn_engine *engine, unsigned count,
                           const struct tarn_oom *oom)
{
    struct tn_call_back call;

    if (tn_call_back_is_inside(engine, TN_CALL_OOM_OBSERVER)) {
        return;
    }
    tn_call_back_begin(&call, engine, TN_CALL_OOM_OBSERVER);
    for (unsigned i = 0; i < count; i++) {
        engine->observers[i].call(engine->observers[i].context, oom);
    }
    tn_call_back_end(&call);
}

/* Memory has run out: tells the sinks under the lock, which is released here, and the observers
 * without it. */
static TN_COLD enum tarn_status
alloc_run_out(struct tn_engine *engine, const struct tn_request *request, struct tarn_error *error)
{
    char processes[TN_OOM_PROCESSES_MAX];
    struct tarn_oom oom = {0};
    const enum tarn_status st = tn_oom_report(engine, request, processes, &oom, error);
    const unsigned observers = engine->observer_count;

    tn_engine_drop_stack(engine, request->stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    call_observers(engine, observers, &oom);
    return st;
}

/* Whether streams may have lanes: what a lane does is not told to anybody. */
static bool engine_may_have_lanes(const struct tn_engine *engine)
{
    return !tn_engine_has_sinks(engine);
}

/* Makes the free blocks of the stream what they are; whether things are calm. */
static inline bool engine_prepare_trail(struct tn_engine *engine, tarn_stream stream)
{
    if (!tn_engine_is_calm(engine)) {
        tn_engine_forget(engine);
        return false;
    }
    if (tn_engine_has_lanes(engine) && !tn_lanes_pay(&engine->lanes)) {
        tn_engine_forget(engine);
    } else if (engine_may_have_lanes(engine) &&
               tn_lanes_consider(&engine->lanes, &engine->lock, stream)) {
        tn_engine_forget_trail(engine, &engine->trail); /* it may be of that stream */
    }
    tn_engine_settle_trail(engine, tn_engine_trail(engine, stream));
    return true;
}

/* An allocation that is no step of the trail. The lock is held, and released here. */
static inline enum tarn_status alloc_afresh(struct tn_engine *engine, struct tn_request *request,
                                            struct tarn_handle *handle_out,
                                            struct tarn_error *error)
{
    if (tn_unlikely(request->requested >= TN_MAX_REQUEST)) {
        tn_engine_drop_stack(engine, request->stack);
        tn_engine_unlock(engine);
        return tn_oom_absurd(error);
    }
    const bool calm = engine_prepare_trail(engine, request->stream);

    if (tn_engine_has_lanes(engine)) {
        tn_lanes_remember(&engine->lanes, request->stream);
    }
    const enum tarn_status st = alloc_locked(engine, request, calm, handle_out, error);

    if (tn_unlikely(st == TARN_ERR_NOT_FOUND || st == TARN_ERR_OUT_OF_MEMORY)) {
        return alloc_run_out(engine, request, error);
    }
    if (tn_unlikely(st)) {
        tn_engine_drop_stack(engine, request->stack); /* else the block has it */
    }
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

/* A stack that was captured before the lock, unless the sinks were switched off meanwhile: what
 * blocks keep while nobody listens would stay on the trail. */
static uint64_t stack_if_heard(struct tn_engine *engine, uint64_t stack)
{
    if (tn_unlikely(stack != 0) && !tn_engine_has_sinks(engine)) {
        tn_engine_drop_stack(engine, stack);
        return 0;
    }
    return stack;
}

/* Takes over the stack. */
static TN_NOINLINE void tell_of_alloc(struct tn_engine *engine, const struct tn_trail_step *step,
                                      uint64_t stack)
{
    const uint64_t kept = stack_if_heard(engine, stack);

    tn_assert(step->block->u.stack == 0);
    step->block->u.stack = kept;
    tn_engine_emit(engine, TARN_ACTION_ALLOC, step->address, step->requested, step->stream,
                   step->block->set->pool, kept);
}

static struct tarn_handle step_handle(const struct tn_trail_step *step)
{
    return (struct tarn_handle){.ptr = step->address, .place = step->place};
}

/* With the engine's lock, which is released: no step of the engine's own trail. */
static TN_NOINLINE enum tarn_status alloc_in_engine(struct tn_engine *engine, uint64_t size,
                                                    tarn_stream stream, uint64_t stack,
                                                    struct tarn_handle *handle_out,
                                                    struct tarn_error *error)
{
    struct tn_request request = {
        .requested = size,
        .stream = stream,
        .stack = stack_if_heard(engine, stack),
    };
    const struct tn_trail_step *step = NULL;

    tn_engine_count(engine);
    if (tn_engine_has_lanes(engine)) {
        struct tn_trail *trail = tn_engine_trail(engine, stream);

        trail->ceiling = trail->end;
        step = tn_trail_forward(trail, size, stream);
        (void)tn_trail_count(trail, &engine->counters);
        tn_lanes_remember(&engine->lanes, stream);
    }
    if (!step) {
        return alloc_afresh(engine, &request, handle_out, error);
    }
    tn_assert(request.stack == 0); /* lanes are open only while nobody listens */
    *handle_out = step_handle(step);
    tn_engine_unlock(engine);
    return TARN_OK;
}

/* Gives the lock back after a step or a call that is plain: nothing changed of what
 * tn_engine_unlock writes down. */
static inline void leave(struct tn_engine *engine)
{
    tn_core_assert(engine);
    tn_biased_lock_release(&engine->lock);
}

/* Whatever is unusual is looked at. */
static TN_NOINLINE enum tarn_status alloc_the_long_way(struct tn_engine *engine, uint64_t size,
                                                       tarn_stream stream,
                                                       struct tarn_handle *handle_out,
                                                       struct tarn_error *error)
{
    if (tn_engine_has_lanes(engine) && tn_lane_alloc(&engine->lanes, size, stream, handle_out)) {
        return TARN_OK;
    }
    const uint64_t stack = tn_engine_capture(engine, TARN_CONTEXT_STATE);

    tn_biased_lock_acquire(&engine->lock);
    const struct tn_trail_step *step =
        tn_engine_has_lanes(engine) ? NULL : tn_trail_forward(&engine->trail, size, stream);

    if (!step) {
        return alloc_in_engine(engine, size, stream, stack, handle_out, error);
    }
    *handle_out = step_handle(step);
    if (tn_engine_has_sinks(engine) || stack != 0) {
        tell_of_alloc(engine, step, stack);
    }
    leave(engine);
    return TARN_OK;
}

/* ---- the short way ---- */

static inline void probe_alloc(const struct tn_engine *engine, tarn_ptr ptr, uint64_t size,
                               tarn_stream stream)
{
    TN_PROBE4(malloc, ptr, engine->device->ordinal, size, stream);
}

/* Takes the lock if nothing is unusual. False, and the lock is not held, if something is. */
static inline bool enter_plain(struct tn_engine *engine)
{
    if (tn_unlikely(!atomic_load_explicit(&engine->plain, memory_order_relaxed))) {
        return false;
    }
    tn_biased_lock_acquire(&engine->lock);
    if (tn_likely(atomic_load_explicit(&engine->plain, memory_order_relaxed))) {
        tn_assert(tn_engine_is_plain(engine));
        return true;
    }
    tn_biased_lock_release(&engine->lock);
    return false;
}

/* An allocation that is no step, from a free block; the lock is released then. False, and nothing
 * has changed, if it has to go the long way. */
static TN_NOINLINE bool alloc_plain(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                    struct tarn_handle *handle_out)
{
    struct tn_request request = {.requested = size, .stream = stream};
    struct tn_trail *trail = &engine->trail;

    if (tn_unlikely(size >= TN_MAX_REQUEST || tn_lanes_may_open(&engine->lanes, &engine->lock))) {
        return false;
    }
    (void)tn_trail_count(trail, &engine->counters);
    tn_engine_settle_trail(engine, trail);
    if (tn_unlikely(request_find(engine, &request, NULL))) {
        return false;
    }
    *handle_out = request_finish(engine, &request, trail, true);
    leave(engine);
    probe_alloc(engine, handle_out->ptr, size, stream);
    return true;
}

enum tarn_status tn_native_alloc(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                 struct tarn_handle *handle_out, struct tarn_error *error)
{
    enum tarn_status st;

    if (tn_likely(enter_plain(engine))) {
        const struct tn_trail_step *step = tn_trail_forward(&engine->trail, size, stream);

        if (tn_likely(step)) {
            *handle_out = step_handle(step);
            leave(engine);
            probe_alloc(engine, handle_out->ptr, size, stream); /* the step may be gone */
            return TARN_OK;
        }
        if (tn_likely(alloc_plain(engine, size, stream, handle_out))) {
            return TARN_OK;
        }
        st = alloc_in_engine(engine, size, stream, 0, handle_out, error);
    } else {
        st = alloc_the_long_way(engine, size, stream, handle_out, error);
    }
    probe_alloc(engine, st ? 0 : handle_out->ptr, size, stream);
    return st;
}

/* ---- freeing ---- */

/* Tells the sinks of a free: that it was asked for and, unless it waits, that it is complete. */
static TN_NOINLINE void announce_free(struct tn_engine *engine, const struct tn_block *block,
                                      bool waits, uint64_t stack)
{
    const uint64_t told = stack ? stack : block->u.stack;

    if (waits) {
        tn_engine_emit(engine, TARN_ACTION_FREE_REQUESTED, block->address, block->requested_size,
                       block->set->stream, block->set->pool, told);
    } else {
        tn_engine_emit_free(engine, block->address, block->requested_size, block->set->stream,
                            block->set->pool, told);
    }
}

/* The first half of a free: the block is not handed out any more. */
static TN_INLINE void retract(struct tn_engine *engine, const struct tn_block *block, unsigned pool)
{
    tn_counters_take_back(&engine->counters, pool, block->size);
    if (tn_unlikely(block->size >= engine->config.max_split_size)) {
        tn_stat_decrease(&engine->counters.plain.oversize_allocations, 1);
    }
}

/* The free itself, when it is settled what a block with uses waits for. The block's place in the
 * pointer map is the caller's to clear: it found it. */
static TN_INLINE void free_settled(struct tn_engine *engine, struct tn_block *block, bool waits,
                                   uint64_t stack)
{
    const unsigned pool = tn_counter_pool(block->set->pool->is_small);

    tn_assert(block->allocated);
    tn_prefetch(block->prev); /* merging will look at both */
    tn_prefetch(block->next);
    block->allocated = false;
    retract(engine, block, pool);
    if (tn_engine_has_sinks(engine)) {
        announce_free(engine, block, waits, stack);
    }
    if (waits) {
        tn_counters_begin_wait(&engine->counters, pool, block->size);
    } else {
        tn_engine_finish_free(engine, block);
    }
}

static inline enum tarn_status free_found(struct tn_engine *engine, struct tn_block *block,
                                          uint64_t stack, struct tarn_error *error)
{
    const bool waits = block->uses != 0;

    if (tn_unlikely(waits)) {
        tn_engine_forget(engine); /* from now on events change the free blocks */
        const enum tarn_status st =
            tn_stream_use_release(engine, block, engine->private_pools.route_count > 0, error);

        if (st) {
            return st;
        }
    }
    free_settled(engine, block, waits, stack);
    return TARN_OK;
}

enum tarn_status tn_native_free_locked(struct tn_engine *engine, struct tn_block *block,
                                       uint64_t stack, struct tarn_error *error)
{
    uint64_t *slot = tn_ptr_map_slot(&engine->map, block->address);
    const enum tarn_status st = free_found(engine, block, stack, error);

    if (st == TARN_OK) {
        tn_ptr_map_remove(&engine->map, slot);
    }
    return st;
}

void tn_native_free_surely(struct tn_engine *engine, struct tn_block *block, uint64_t stack)
{
    const enum tarn_status st = tn_native_free_locked(engine, block, stack, NULL);

    if (st) { /* only for want of an event: it is recorded later */
        tn_stream_use_defer(engine, block);
        tn_ptr_map_take(&engine->map, block->address);
        free_settled(engine, block, true, stack);
    }
}

/* Place of a block that is handed out, whose stream's trail is forgotten; NULL when there is none
 * at that address. */
static uint64_t *find_to_free(struct tn_engine *engine, struct tarn_handle handle)
{
    tn_engine_forget_trail(engine, &engine->trail);
    uint64_t *slot = tn_ptr_map_slot_at(&engine->map, handle.place, handle.ptr);

    if (slot && tn_engine_has_lanes(engine)) {
        const struct tn_block *block = tn_ptr_entry_block(*slot);

        tn_engine_forget_trail(engine, tn_engine_trail(engine, block->set->stream));
        slot = tn_ptr_map_slot(&engine->map, handle.ptr); /* it may have been freed on that trail */
    }
    return slot;
}

/* With the engine's lock, which is released: no step of the engine's own trail. */
static TN_NOINLINE enum tarn_status free_in_engine(struct tn_engine *engine,
                                                   struct tarn_handle handle, uint64_t stack,
                                                   struct tarn_error *error)
{
    tn_engine_count(engine);
    uint64_t *slot = find_to_free(engine, handle);
    const enum tarn_status st = slot ? free_found(engine, tn_ptr_entry_block(*slot), stack, error)
                                     : tn_pointer_unknown(handle.ptr, error);

    if (tn_likely(st == TARN_OK)) {
        tn_ptr_map_remove(&engine->map, slot);
    }
    tn_engine_drop_stack(engine, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

/* Takes over the stack. */
static TN_NOINLINE void tell_of_free(struct tn_engine *engine, const struct tn_trail_step *step,
                                     uint64_t stack)
{
    const uint64_t told = stack ? stack : step->block->u.stack;

    if (tn_engine_has_sinks(engine)) {
        tn_engine_emit_free(engine, step->address, step->requested, step->stream,
                            step->block->set->pool, told);
    }
    tn_engine_drop_stack(engine, step->block->u.stack);
    tn_engine_drop_stack(engine, stack);
    step->block->u.stack = 0;
}

static TN_NOINLINE enum tarn_status
free_the_long_way(struct tn_engine *engine, struct tarn_handle handle, struct tarn_error *error)
{
    if (tn_engine_has_lanes(engine) && tn_lane_free(&engine->lanes, handle.ptr)) {
        return TARN_OK;
    }
    const uint64_t stack = tn_engine_capture(engine, TARN_CONTEXT_ALL);

    tn_biased_lock_acquire(&engine->lock);
    const struct tn_trail_step *step =
        tn_engine_has_lanes(engine) ? NULL : tn_trail_back(&engine->trail, handle.ptr);

    if (!step) {
        return free_in_engine(engine, handle, stack, error);
    }
    if (tn_engine_has_sinks(engine) || stack != 0) {
        tell_of_free(engine, step, stack);
    }
    leave(engine);
    return TARN_OK;
}

/* As alloc_plain: a free that is no step, of a block that waits for nothing. */
static TN_NOINLINE bool free_plain(struct tn_engine *engine, struct tarn_handle handle)
{
    (void)tn_trail_count(&engine->trail, &engine->counters);
    tn_engine_forget_trail(engine, &engine->trail);
    uint64_t *slot = tn_ptr_map_slot_at(&engine->map, handle.place, handle.ptr);

    if (tn_unlikely(!slot || tn_ptr_entry_block(*slot)->uses != 0)) {
        return false;
    }
    free_settled(engine, tn_ptr_entry_block(*slot), false, 0);
    tn_ptr_map_remove(&engine->map, slot);
    leave(engine);
    return true;
}

enum tarn_status tn_native_free(struct tn_engine *engine, struct tarn_handle handle,
                                struct tarn_error *error)
{
    TN_PROBE1(free, handle.ptr);
    if (tn_unlikely(!enter_plain(engine))) {
        return free_the_long_way(engine, handle, error);
    }
    if (tn_likely(tn_trail_back(&engine->trail, handle.ptr))) {
        leave(engine);
        return TARN_OK;
    }
    return tn_likely(free_plain(engine, handle)) ? TARN_OK
                                                 : free_in_engine(engine, handle, 0, error);
}

/* ---- the rest ---- */

enum tarn_status tn_native_record_stream(struct tn_engine *engine, tarn_ptr ptr, tarn_stream stream,
                                         struct tarn_error *error)
{
    enum tarn_status st;

    tn_engine_lock(engine);
    struct tn_block *block = tn_ptr_map_find(&engine->map, ptr);

    if (!block) {
        st = tn_pointer_unknown(ptr, error);
    } else {
        st = tn_stream_use_record(engine, block, stream, engine->private_pools.route_count > 0);
        if (st) {
            (void)tn_fail(error, st, "no host memory to record a stream");
        }
    }
    tn_engine_unlock(engine);
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

    tn_engine_lock(engine);
    const enum tarn_status st = tn_gc_release_cached(engine, id, stack, error);

    engine_trim(engine);
    tn_engine_drop_stack(engine, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

enum tarn_status tn_native_base_allocation(struct tn_engine *engine, tarn_ptr ptr,
                                           tarn_ptr *base_out, uint64_t *size_out,
                                           struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    tn_engine_lock_to_look(engine);
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
    tn_engine_unlock(engine);
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
    tn_engine_lock(engine);
    engine_apply_fraction(engine, fraction);
    tn_engine_unlock(engine);
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

    tn_engine_lock_to_look(engine);
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
    tn_engine_unlock(engine);
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
    tn_lanes_init(&engine->lanes);
    tn_biased_lock_init(&engine->lock, TN_LOCK_ALLOCATOR);
}

/* Frees every node of the segment and the memory behind it, whatever state its blocks are in. */
static void segment_abandon(struct tn_engine *engine, struct tn_segment *segment)
{
    struct tn_block *block = segment->first;

    while (block) {
        struct tn_block *next = block->next;

        if (tn_block_is_idle(block)) {
            tn_engine_unfile(engine, block);
        } else {
            tn_engine_drop_stack(engine, block->u.stack);
        }
        tn_block_destroy(block);
        block = next;
    }
    tn_engine_drop_stack(engine, segment->stack);
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

    tn_engine_lock(engine); /* no lane stays open, no trail is left */
    tn_engine_unlock(engine);
    tn_lanes_fini(&engine->lanes);
    tn_stream_waits_fini(engine);
    while ((segment = tn_segment_first(engine)) != NULL) {
        segment_abandon(engine, segment);
    }
    tn_private_pools_fini(engine);
    tn_pool_fini(&engine->small);
    tn_pool_fini(&engine->large);
    while (engine->spares) {
        tn_block_destroy(tn_engine_take_spare(engine));
    }
    tn_block_slab_fini(&engine->slab);
    tn_block_slab_fini(&engine->heads);
    tn_ptr_map_fini(&engine->map);
    tn_biased_lock_fini(&engine->lock);
}
