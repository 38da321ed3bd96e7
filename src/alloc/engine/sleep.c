/* SPDX-License-Identifier: MIT */
/*
 * Sleeping: check, note what is to be saved; without the lock wait for the device and copy; with it
 * unmap and release. Waking: create and map; without the lock copy back. Meanwhile the pool counts
 * as asleep, so that nothing is allocated from it, and is pinned; `is_moving` keeps other threads
 * from starting the same.
 */
#include "alloc/engine/sleep.h"

#include "alloc/engine/core_check.h"
#include "alloc/engine/gc.h"
#include "alloc/pool/asleep.h"
#include "alloc/pool/segment.h"
#include "base/clock.h"

#include <inttypes.h>

/* ---- checks ---- */

static enum tarn_status check_capture(const struct tn_engine *engine, struct tarn_error *error)
{
    return tn_heap_is_capturing(&engine->heap)
               ? tn_fail(error, TARN_ERR_STATE,
                         "a graph is being captured, or requests are routed to a pool: nothing can "
                         "sleep or wake until that ends")
               : TARN_OK;
}

static enum tarn_status pool_find(const struct tn_engine *engine, struct tarn_pool_id id,
                                  struct tn_private_pool **pool_out, struct tarn_error *error)
{
    if (id.first == 0 && id.second == 0) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "the default pools cannot sleep: only private ones can");
    }
    *pool_out = tn_private_pool_find(&engine->heap.private_pools, id);
    if (!*pool_out) {
        return tn_fail(error, TARN_ERR_NOT_FOUND,
                       "there is no private pool (%" PRIu64 ", %" PRIu64 ")", id.first, id.second);
    }
    return check_capture(engine, error);
}

static enum tarn_status pool_is_moving(const struct tn_private_pool *pool, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_STATE,
                   "private pool (%" PRIu64 ", %" PRIu64 ") is about to sleep or wake",
                   pool->id.first, pool->id.second);
}

static bool is_shared(const struct tn_expandable *expandable)
{
    for (uint64_t i = 0; i < expandable->descriptor_count; i++) {
        if (tn_page_is_shared(expandable, i)) {
            return true;
        }
    }
    return false;
}

static enum tarn_status segment_check(const struct tn_segment *segment, struct tarn_error *error)
{
    if (!segment->expandable) {
        return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                       "the pool has a segment of %" PRIu64
                       " bytes that is not expandable and cannot sleep: set "
                       "expandable_segments:True or policy:compact",
                       segment->size);
    }
    return is_shared(segment->expandable)
               ? tn_fail(error, TARN_ERR_STATE,
                         "memory of the pool was shared with other processes and cannot sleep")
               : TARN_OK;
}

static enum tarn_status pool_check(const struct tn_engine *engine,
                                   const struct tn_private_pool *pool, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    if (pool->sleeps) {
        return pool->asleep->is_moving
                   ? pool_is_moving(pool, error)
                   : tn_fail(error, TARN_ERR_STATE,
                             "private pool (%" PRIu64 ", %" PRIu64 ") is asleep already",
                             pool->id.first, pool->id.second);
    }
    for (const struct tn_segment *s = tn_segment_first(&engine->heap); s && st == TARN_OK;
         s = tn_segment_next(s)) {
        st = s->first->set->pool->owner == pool ? segment_check(s, error) : TARN_OK;
    }
    return st;
}

/* ---- without the lock ---- */

/* From here on nothing changes the pool but frees, until end_moving. */
static void begin_moving(struct tn_engine *engine, struct tn_private_pool *pool)
{
    pool->sleeps = true;
    pool->asleep->is_moving = true;
    pool->pins++;
    tn_core_assert(engine);
    tn_engine_unlock(engine);
}

static void end_moving(struct tn_engine *engine, struct tn_private_pool *pool)
{
    tn_engine_lock(engine);
    pool->pins--;
    pool->asleep->is_moving = false;
}

/* ---- sleeping ---- */

static enum tarn_status pool_prepare(struct tn_engine *engine, struct tn_private_pool *pool,
                                     bool discard, bool keep_host, struct tarn_error *error)
{
    if (!pool->asleep) {
        pool->asleep = tn_asleep_create(engine->heap.device);
        pool->asleep_gone = tn_asleep_destroy;
    }
    if (!pool->asleep) {
        return tn_fail_memory(error);
    }
    pool->asleep->keeps_host = keep_host;
    tn_saved_clear(&pool->asleep->saved);
    return tn_asleep_look(pool->asleep, &engine->heap, pool) &&
                   (discard || tn_asleep_plan(pool->asleep))
               ? TARN_OK
               : tn_fail_memory(error);
}

/* Any stream may use memory of the pool: a captured graph runs where it is launched. */
static enum tarn_status pool_store(struct tn_engine *engine, struct tn_private_pool *pool,
                                   struct tarn_error *error)
{
    struct tarn_device *device = engine->heap.device;
    const enum tarn_status st = device->ops->device_wait(device);

    return st ? tn_heap_device_failed(&engine->heap, st, "waiting for the device", error)
              : tn_saved_store(&pool->asleep->saved, error);
}

/* Gives the pages back. Those that came from elsewhere may still be mapped at their old address,
 * which no work uses any more. */
static enum tarn_status pool_leave(struct tn_engine *engine, struct tn_private_pool *pool,
                                   uint64_t stack, struct tarn_error *error)
{
    enum tarn_status st = check_capture(engine, error); /* it may have begun meanwhile */

    st = st ? st : tn_retired_unmap(&engine->compact.retired, true, error);
    return st ? st : tn_asleep_leave(pool->asleep, &engine->heap, true, stack, error);
}

/* The pool is awake: its contents are not needed any more. */
static void pool_awake(struct tn_private_pool *pool, bool keeps_host)
{
    pool->sleeps = false;
    tn_saved_clear(&pool->asleep->saved);
    if (!keeps_host) {
        tn_saved_release(&pool->asleep->saved);
    }
}

static enum tarn_status sleep_locked(struct tn_engine *engine, struct tarn_pool_id id,
                                     const struct tarn_sleep_options *options, uint64_t stack,
                                     struct tarn_error *error)
{
    struct tn_private_pool *pool = NULL;
    enum tarn_status st = pool_find(engine, id, &pool, error);

    if (st) {
        return st;
    }
    tn_assert(pool);
    st = pool_check(engine, pool, error);
    st = st ? st : pool_prepare(engine, pool, options->discard, options->keep_host, error);
    if (st) {
        return st;
    }
    begin_moving(engine, pool);
    st = pool_store(engine, pool, error);
    end_moving(engine, pool);
    st = st ? st : pool_leave(engine, pool, stack, error);
    if (st && tn_asleep_bytes(pool->asleep) == 0) {
        pool_awake(pool, false);
    }
    return st;
}

/* Fills in what an older or NULL struct lacks. */
static struct tarn_sleep_options options_of(const struct tarn_sleep_options *options)
{
    return options ? *options : (struct tarn_sleep_options){.struct_size = sizeof *options};
}

enum tarn_status tn_sleep_begin(struct tn_engine *engine, struct tarn_pool_id id,
                                const struct tarn_sleep_options *options, struct tarn_error *error)
{
    const struct tarn_sleep_options all = options_of(options);
    const uint64_t begin_ns = tn_clock_now_ns();
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_ALL);

    tn_engine_lock(engine);
    const enum tarn_status st = sleep_locked(engine, id, &all, stack, error);

    engine->sleeping.sleeps += st == TARN_OK;
    engine->sleeping.sleep_ns += st == TARN_OK ? tn_clock_now_ns() - begin_ns : 0;
    tn_heap_drop_captured(&engine->heap, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

/* ---- waking ---- */

/* What may be reserved so that `bytes` more fit, into the limit and the device's memory. */
static uint64_t room_target(const struct tn_heap *heap, uint64_t bytes)
{
    uint64_t target = heap->reserved;
    uint64_t free_bytes;
    uint64_t total;

    if (tn_heap_limit_is_set(heap) && target + bytes > heap->limit) {
        target = bytes < heap->limit ? heap->limit - bytes : 0;
    }
    if (heap->device->ops->memory_info(heap->device, &free_bytes, &total) == TARN_OK &&
        free_bytes < bytes) {
        const uint64_t lacking = bytes - free_bytes;
        const uint64_t left = lacking < heap->reserved ? heap->reserved - lacking : 0;

        target = left < target ? left : target;
    }
    return target;
}

static enum tarn_status return_within_limit(struct tn_engine *engine,
                                            const struct tn_private_pool *pool, uint64_t stack,
                                            struct tarn_error *error)
{
    struct tn_heap *heap = &engine->heap;
    struct tn_asleep *asleep = pool->asleep;
    const uint64_t bytes = tn_asleep_bytes(asleep);

    if (!tn_asleep_look(asleep, heap, pool)) {
        return tn_fail_memory(error);
    }
    if (tn_heap_limit_is_set(heap) && heap->reserved + bytes > heap->limit) {
        return tn_fail(error, TARN_ERR_OUT_OF_MEMORY,
                       "waking needs %" PRIu64 " bytes, but %" PRIu64 " of at most %" PRIu64
                       " are reserved",
                       bytes, heap->reserved, heap->limit);
    }
    return tn_asleep_return(asleep, heap, stack, error);
}

/* Maps the pages. Where there is no room, cached memory goes. */
static enum tarn_status pool_return(struct tn_engine *engine, struct tn_private_pool *pool,
                                    uint64_t stack, struct tarn_error *error)
{
    const enum tarn_status st = return_within_limit(engine, pool, stack, error);

    if (st != TARN_ERR_OUT_OF_MEMORY) {
        return st;
    }
    const uint64_t target = room_target(&engine->heap, tn_asleep_bytes(pool->asleep));

    pool->pins++; /* if it was released, this frees what is free of it */
    const enum tarn_status trimmed = tn_gc_trim(engine, target, stack, error);

    pool->pins--;
    return trimmed ? trimmed : return_within_limit(engine, pool, stack, error);
}

static enum tarn_status wake_locked(struct tn_engine *engine, struct tarn_pool_id id,
                                    uint64_t stack, struct tarn_error *error)
{
    struct tn_private_pool *pool = NULL;
    enum tarn_status st = pool_find(engine, id, &pool, error);

    if (st) {
        return st;
    }
    tn_assert(pool);
    if (!pool->sleeps) {
        st = tn_fail(error, TARN_ERR_STATE, "private pool (%" PRIu64 ", %" PRIu64 ") is not asleep",
                     id.first, id.second);
    }
    if (st == TARN_OK && pool->asleep->is_moving) {
        st = pool_is_moving(pool, error);
    }
    st = st ? st : pool_return(engine, pool, stack, error);
    if (st) {
        return st;
    }
    begin_moving(engine, pool);
    st = tn_saved_restore(&pool->asleep->saved, error);
    end_moving(engine, pool);
    if (st) { /* what cannot be unmapped is there at the next try */
        (void)!tn_asleep_leave(pool->asleep, &engine->heap, false, stack, NULL);
        return st;
    }
    pool_awake(pool, pool->asleep->keeps_host);
    return TARN_OK;
}

enum tarn_status tn_sleep_end(struct tn_engine *engine, struct tarn_pool_id id,
                              struct tarn_error *error)
{
    const uint64_t begin_ns = tn_clock_now_ns();
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_ALL);

    tn_engine_lock(engine);
    const enum tarn_status st = wake_locked(engine, id, stack, error);

    engine->sleeping.wakes += st == TARN_OK;
    engine->sleeping.wake_ns += st == TARN_OK ? tn_clock_now_ns() - begin_ns : 0;
    tn_heap_drop_captured(&engine->heap, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

/* ---- the rest ---- */

void tn_sleep_read(const struct tn_engine *engine, struct tarn_sleep_stats *stats_out)
{
    *stats_out = engine->sleeping;
    for (const struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
        stats_out->pools += p->sleeps;
        stats_out->bytes += p->asleep ? tn_asleep_bytes(p->asleep) : 0;
        stats_out->host_bytes += p->asleep ? tn_saved_host_bytes(&p->asleep->saved) : 0;
    }
}
