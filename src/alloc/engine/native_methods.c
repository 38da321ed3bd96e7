/* SPDX-License-Identifier: MIT */
/*
 * The caching engine's table of functions. Decisions are in native.c and the files it uses; this
 * file takes the lock for what needs only a few lines, and bypasses the cache while it is switched
 * off.
 */
#include "alloc/config/size_class.h"
#include "alloc/engine/allocator.h"
#include "alloc/engine/checkpoint.h"
#include "alloc/engine/core_check.h"
#include "alloc/engine/engine_methods.h"
#include "alloc/engine/gc.h"
#include "alloc/engine/ipc_export.h"
#include "alloc/engine/native.h"
#include "alloc/engine/oom.h"
#include "alloc/engine/sleep.h"
#include "alloc/engine/visit.h"
#include "alloc/engine/watch_source.h"
#include "alloc/pool/segment.h"
#include "alloc/pool/sinks.h"
#include "base/host_mem.h"
#include "base/os_wait.h"

static struct tn_native_allocator *native_of(struct tarn_allocator *allocator)
{
    return (struct tn_native_allocator *)allocator;
}

enum tarn_status tn_native_create(struct tarn_device *device, const struct tarn_config *config,
                                  struct tarn_allocator **allocator_out)
{
    struct tn_native_allocator *native = tn_host_alloc_zero(sizeof *native);

    if (!native) {
        return TARN_ERR_HOST_MEMORY;
    }
    native->base = (struct tarn_allocator){.methods = &tn_native_methods, .device = device};
    native->engine.owner = &native->base;
    tn_engine_init(&native->engine, device, config);
    tn_direct_memory_init(&native->direct, device);
    *allocator_out = &native->base;
    return TARN_OK;
}

static void native_destroy(struct tarn_allocator *allocator)
{
    struct tn_native_allocator *native = native_of(allocator);

    tn_engine_fini(&native->engine);
    tn_direct_memory_fini(&native->direct);
    tn_host_free(native, sizeof *native);
}

/* ---- engine functions that take the lock ---- */

static void engine_trim(struct tn_engine *engine)
{
    tn_pool_trim(&engine->heap.small);
    tn_pool_trim(&engine->heap.large);
    for (struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
        tn_pool_trim(&p->small);
        tn_pool_trim(&p->large);
    }
}

static enum tarn_status engine_empty_cache(struct tn_engine *engine, struct tarn_pool_id id,
                                           struct tarn_error *error)
{
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_ALL);

    tn_engine_lock(engine);
    const enum tarn_status st = tn_gc_release_cached(engine, id, stack, error);

    engine_trim(engine);
    tn_heap_drop_captured(&engine->heap, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_trim(struct tarn_allocator *allocator, uint64_t target,
                                    struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_ALL);

    tn_engine_lock(engine);
    const enum tarn_status st = tn_gc_trim(engine, target, stack, error);

    tn_heap_drop_captured(&engine->heap, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status engine_base_allocation(struct tn_engine *engine, tarn_ptr ptr,
                                               tarn_ptr *base_out, uint64_t *size_out,
                                               struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    if (tn_heap_find(&engine->heap, ptr)) {
        const struct tn_segment *segment = tn_segment_find(&engine->heap, ptr);

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

static enum tarn_status engine_block_size(struct tn_engine *engine, tarn_ptr ptr,
                                          uint64_t *size_out, struct tarn_error *error)
{
    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    const struct tn_block *block = tn_heap_find(&engine->heap, ptr);
    const enum tarn_status st = block ? TARN_OK : tn_pointer_unknown(ptr, error);

    if (block) {
        *size_out = block->size;
    }
    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status engine_set_fraction(struct tn_engine *engine, double fraction,
                                            struct tarn_error *error)
{
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "invalid fraction:%g. Please set within [0, 1].", fraction);
    }
    tn_engine_lock(engine);
    tn_engine_apply_fraction(engine, fraction);
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

static enum tarn_status engine_cache_info(struct tn_engine *engine, uint64_t *largest,
                                          struct tarn_error *error)
{
    uint64_t total;
    enum tarn_status st = TARN_OK;
    uint64_t found = *largest;

    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    if (found == 0) {
        st = engine->heap.device->ops->memory_info(engine->heap.device, &found, &total);
    }
    if (st) {
        (void)tn_heap_device_failed(&engine->heap, st, "querying free memory", error);
    } else {
        const struct tn_pool *pools[] = {&engine->heap.small, &engine->heap.large};

        for (int i = 0; i < 2; i++) {
            const uint64_t size = pool_largest(pools[i]);

            found = size > found ? size : found;
        }
        for (const struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
            const uint64_t small = pool_largest(&p->small);
            const uint64_t large = pool_largest(&p->large);
            const uint64_t largest_there = p->sleeps ? 0 : small > large ? small : large;

            found = largest_there > found ? largest_there : found;
        }
        *largest = found;
    }
    tn_engine_unlock(engine);
    return st;
}

/* ---- memory ---- */

static TN_COLD enum tarn_status direct_alloc(struct tn_native_allocator *native, uint64_t size,
                                             tarn_ptr *ptr_out, struct tarn_error *error)
{
    return size >= TN_MAX_REQUEST ? tn_oom_absurd(error)
                                  : tn_direct_memory_alloc(&native->direct, size, ptr_out, error);
}

/* Whether the pointer was allocated bypassing the cache. */
static bool pointer_is_direct(struct tn_native_allocator *native, tarn_ptr ptr, uint64_t *size_out)
{
    return tn_unlikely(!tn_direct_memory_is_empty(&native->direct)) &&
           tn_direct_memory_find(&native->direct, ptr, size_out);
}

static TN_NO_STACK_GUARD enum tarn_status native_alloc(struct tarn_allocator *allocator,
                                                       uint64_t size, tarn_stream stream,
                                                       tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct tn_native_allocator *native = native_of(allocator);

    if (tn_unlikely(atomic_load_explicit(&native->disabled, memory_order_relaxed))) {
        return direct_alloc(native, size, ptr_out, error);
    }
    return tn_native_alloc(&native->engine, size, stream, ptr_out, error);
}

static bool native_is_enabled(struct tarn_allocator *allocator)
{
    return !atomic_load_explicit(&native_of(allocator)->disabled, memory_order_relaxed);
}

static enum tarn_status native_alloc_at(struct tarn_allocator *allocator, uint64_t size,
                                        tarn_stream stream, tarn_ptr address,
                                        struct tarn_error *error)
{
    if (!native_is_enabled(allocator)) {
        return tn_fail(error, TARN_ERR_STATE,
                       "the cache is switched off: nothing can be allocated at an address");
    }
    return tn_native_alloc_at(tn_allocator_engine(allocator), size, stream, address, error);
}

/* While there is memory that bypassed the cache. Apart, so that native_free saves no registers. */
static TN_COLD enum tarn_status free_cached_or_direct(struct tn_native_allocator *native,
                                                      tarn_ptr ptr, struct tarn_error *error)
{
    return pointer_is_direct(native, ptr, NULL) ? tn_direct_memory_free(&native->direct, ptr, error)
                                                : tn_native_free(&native->engine, ptr, error);
}

static TN_NO_STACK_GUARD enum tarn_status native_free(struct tarn_allocator *allocator,
                                                      tarn_ptr ptr, struct tarn_error *error)
{
    struct tn_native_allocator *native = native_of(allocator);

    if (tn_unlikely(!tn_direct_memory_is_empty(&native->direct))) {
        return free_cached_or_direct(native, ptr, error);
    }
    return tn_native_free(&native->engine, ptr, error);
}

static enum tarn_status native_record_stream(struct tarn_allocator *allocator, tarn_ptr ptr,
                                             tarn_stream stream, struct tarn_error *error)
{
    struct tn_native_allocator *native = native_of(allocator);

    if (pointer_is_direct(native, ptr, NULL)) {
        return TARN_OK; /* the device's own free waits for every stream */
    }
    return tn_native_record_stream(&native->engine, ptr, stream, error);
}

static enum tarn_status native_empty_cache(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                           struct tarn_error *error)
{
    return engine_empty_cache(tn_allocator_engine(allocator), id, error);
}

static enum tarn_status native_base_allocation(struct tarn_allocator *allocator, tarn_ptr ptr,
                                               tarn_ptr *base_out, uint64_t *size_out,
                                               struct tarn_error *error)
{
    struct tn_native_allocator *native = native_of(allocator);

    if (pointer_is_direct(native, ptr, size_out)) {
        if (base_out) {
            *base_out = ptr;
        }
        return TARN_OK;
    }
    return engine_base_allocation(&native->engine, ptr, base_out, size_out, error);
}

static enum tarn_status native_block_size(struct tarn_allocator *allocator, tarn_ptr ptr,
                                          uint64_t *size_out, struct tarn_error *error)
{
    struct tn_native_allocator *native = native_of(allocator);

    return pointer_is_direct(native, ptr, size_out)
               ? TARN_OK
               : engine_block_size(&native->engine, ptr, size_out, error);
}

static enum tarn_status native_ipc_export(struct tarn_allocator *allocator, tarn_ptr ptr,
                                          struct tn_ipc_buffer *buffer, struct tarn_error *error)
{
    struct tn_native_allocator *native = native_of(allocator);

    return pointer_is_direct(native, ptr, NULL)
               ? tn_direct_memory_export(&native->direct, ptr, buffer, error)
               : tn_native_ipc_export(&native->engine, ptr, buffer, error);
}

static enum tarn_status native_cache_info(struct tarn_allocator *allocator,
                                          uint64_t *largest_in_out, struct tarn_error *error)
{
    return engine_cache_info(tn_allocator_engine(allocator), largest_in_out, error);
}

/* ---- settings ---- */

static enum tarn_status native_set_enabled(struct tarn_allocator *allocator, bool enabled,
                                           struct tarn_error *error)
{
    (void)error;
    atomic_store_explicit(&native_of(allocator)->disabled, !enabled, memory_order_relaxed);
    return TARN_OK;
}

static enum tarn_status native_set_fraction(struct tarn_allocator *allocator, double fraction,
                                            struct tarn_error *error)
{
    return engine_set_fraction(tn_allocator_engine(allocator), fraction, error);
}

static uint64_t native_get_limit(struct tarn_allocator *allocator)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    const uint64_t limit = engine->heap.limit;

    tn_engine_unlock(engine);
    return limit;
}

static void native_get_config(struct tarn_allocator *allocator, struct tarn_config *config_out)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    *config_out = engine->heap.config;
    tn_engine_unlock(engine);
}

static void native_set_config(struct tarn_allocator *allocator, const struct tarn_config *config)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    tn_engine_apply_config(engine, config);
    tn_engine_unlock(engine);
}

/* ---- counters, walks, receivers ---- */

static void native_get_stats(struct tarn_allocator *allocator, struct tarn_stats *stats_out)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    tn_counters_read(&engine->heap.shard.counters, stats_out);
    tn_engine_unlock(engine);
}

static size_t native_get_pool_reserved(struct tarn_allocator *allocator,
                                       struct tarn_pool_reserved *reserved_out, size_t room)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const size_t count =
        tn_pool_records_read(&engine->heap.private_pools.records, reserved_out, room);

    tn_engine_unlock(engine);
    return count;
}

static size_t native_get_expandable_segments(struct tarn_allocator *allocator,
                                             struct tarn_segment_info *segments_out, size_t room)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    const size_t count = tn_visit_expandable(engine, segments_out, room);

    tn_engine_unlock(engine);
    return count;
}

static void native_get_page_stats(struct tarn_allocator *allocator,
                                  struct tarn_page_stats *stats_out)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    if (tn_compact_is_on(&engine->heap)) {
        tn_compact_read(&engine->compact, stats_out);
    }
    tn_engine_unlock(engine);
}

/* A walk takes 10 ns or so per block, and the lock is held meanwhile. */
static bool engine_is_walked(const struct tarn_stats *stats)
{
    enum {
        BLOCKS_MAX = 1 << 16
    };
    const struct tarn_stat(*by_pool)[TARN_STAT_POOLS] = stats->by_pool;

    return by_pool[TARN_STAT_ACTIVE][TARN_STAT_ALL].current +
               by_pool[TARN_STAT_INACTIVE_SPLIT][TARN_STAT_ALL].current <=
           BLOCKS_MAX;
}

static bool native_observe(struct tarn_allocator *allocator, struct tn_observation *observation)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    if (!tn_biased_lock_visit(&engine->heap.lock)) {
        return false;
    }
    tn_fast_flush(&engine->fast, &engine->heap,
                  observation->walker ? TN_FLUSH_BLOCKS : TN_FLUSH_COUNTERS);
    tn_counters_read(&engine->heap.shard.counters, &observation->stats);
    observation->limit = engine->heap.limit;
    if (tn_compact_is_on(&engine->heap)) {
        tn_compact_read(&engine->compact, &observation->pages);
    }
    if (observation->walker && engine_is_walked(&observation->stats)) {
        tn_visit(engine, observation->walker);
        observation->walked = true;
    }
    tn_engine_unlock(engine);
    return true;
}

static void native_reset_peak_stats(struct tarn_allocator *allocator)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    tn_counters_reset_peaks(&engine->heap.shard.counters);
    tn_pool_records_reset_peaks(&engine->heap.private_pools.records);
    tn_engine_unlock(engine);
}

static void native_reset_accumulated_stats(struct tarn_allocator *allocator)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    tn_counters_reset_accumulated(&engine->heap.shard.counters);
    tn_pool_records_reset_accumulated(&engine->heap.private_pools.records);
    tn_engine_unlock(engine);
}

static uint64_t native_check(struct tarn_allocator *allocator, struct tarn_findings *findings)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    const uint64_t count = tn_core_check(engine, findings);

    tn_engine_unlock(engine);
    return count + tn_direct_memory_check(&native_of(allocator)->direct, findings);
}

static enum tarn_status native_walk(struct tarn_allocator *allocator,
                                    const struct tarn_pool_id *pool,
                                    const struct tarn_walker *walker, struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    (void)error;
    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    if (pool) {
        tn_visit_pool(engine, *pool, walker);
    } else {
        tn_visit(engine, walker);
    }
    tn_engine_unlock(engine);
    return TARN_OK;
}

static enum tarn_status native_look(struct tarn_allocator *allocator,
                                    const struct tarn_pool_id *pool, const struct tn_look *look,
                                    struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    (void)error;
    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    look->begin(look->context);
    if (pool) {
        tn_visit_pool(engine, *pool, &look->walker);
    } else {
        tn_visit(engine, &look->walker);
    }
    if (look->page) {
        tn_visit_pages(engine, pool, look->page, look->context);
    }
    if (look->end(look->context)) {
        tn_visit_mark_snapshot(engine);
    }
    tn_engine_unlock(engine);
    return TARN_OK;
}

const void *tn_allocator_stack_keeper(const struct tarn_allocator *allocator)
{
    if (!tn_allocator_is_native(allocator)) {
        return NULL;
    }
    const struct tn_engine *engine = &((const struct tn_native_allocator *)allocator)->engine;
    const struct tarn_sink *sink =
        atomic_load_explicit(&engine->heap.capturer, memory_order_acquire);

    return sink ? sink->context : NULL;
}

void tn_allocator_visit_keeper(struct tarn_allocator *allocator,
                               void (*visit)(void *context, const struct tarn_sink *sink),
                               void *context)
{
    if (tn_allocator_is_native(allocator)) {
        struct tn_engine *engine = tn_allocator_engine(allocator);

        tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
        const struct tarn_sink *sink =
            atomic_load_explicit(&engine->heap.capturer, memory_order_relaxed);

        if (sink) {
            visit(context, sink);
        }
        tn_engine_unlock(engine);
    }
}

void tn_allocator_yield_sink(struct tarn_allocator *allocator, const void *context)
{
    if (tn_allocator_is_native(allocator)) {
        struct tn_engine *engine = tn_allocator_engine(allocator);

        tn_engine_lock(engine);
        tn_sinks_yield(&engine->heap, context);
        tn_engine_unlock(engine);
    }
}

/* The lock is held, and released meanwhile. Calls that have captured a stack take their time where
 * they wait for the device. */
static bool wait_for_captures(struct tn_engine *engine, const void *context)
{
    enum {
        NAPS_MAX = 1000 /* of a millisecond, but the first few */
    };

    for (unsigned nap = 0; !tn_sinks_may_leave(&engine->heap, context); nap++) {
        if (nap == NAPS_MAX) {
            return false;
        }
        tn_engine_unlock(engine);
        tn_os_nap(nap);
        tn_engine_lock(engine);
    }
    return true;
}

/* The lock is held, and released meanwhile. */
static enum tarn_status remove_sink(struct tn_engine *engine, const void *context,
                                    struct tarn_error *error)
{
    const enum tarn_status st = tn_sinks_begin_removal(&engine->heap, context, error);

    if (st) {
        return st;
    }
    if (!wait_for_captures(engine, context)) {
        tn_sinks_cancel_removal(&engine->heap, context);
        return tn_fail(error, TARN_ERR_NOT_READY,
                       "a call that captured a stack is still in progress: the sink stays, "
                       "switched off");
    }
    tn_sinks_end_removal(&engine->heap, context);
    return TARN_OK;
}

static enum tarn_status native_add_sink(struct tarn_allocator *allocator,
                                        const struct tarn_sink *sink, struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const void *yielding = sink->capture ? tn_sinks_yielding(&engine->heap) : NULL;

    if (yielding) {
        (void)!remove_sink(engine, yielding, NULL); /* if it stays, the new one is refused */
    }
    const enum tarn_status st = tn_sinks_add(&engine->heap, sink, error);

    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_set_sink(struct tarn_allocator *allocator, const void *context,
                                        bool on, enum tarn_context_level level,
                                        struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const enum tarn_status st = tn_sinks_set(&engine->heap, context, on, level, error);

    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_remove_sink(struct tarn_allocator *allocator, const void *context,
                                           struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const enum tarn_status st = remove_sink(engine, context, error);

    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_annotate(struct tarn_allocator *allocator, tarn_ptr ptr,
                                        const char *text, struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_ALLOC);

    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    const struct tn_block *block = tn_heap_find(&engine->heap, ptr);

    if (block) {
        tn_heap_annotate(&engine->heap, block, text, stack);
    }
    tn_heap_drop_captured(&engine->heap, stack);
    tn_engine_unlock(engine);
    return block || tn_direct_memory_find(&native_of(allocator)->direct, ptr, NULL)
               ? TARN_OK
               : tn_pointer_unknown(ptr, error);
}

static void native_mark_snapshot(struct tarn_allocator *allocator)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    tn_visit_mark_snapshot(engine);
    tn_engine_unlock(engine);
}

static enum tarn_status native_add_oom_observer(struct tarn_allocator *allocator,
                                                tarn_oom_observer observer, void *context)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    const enum tarn_status st =
        tn_callback_add(&engine->observers, (tn_any_function)observer, context);

    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_add_memory_callback(struct tarn_allocator *allocator,
                                                   tarn_memory_callback callback, void *context)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const enum tarn_status st =
        tn_callback_add(&engine->callbacks, (tn_any_function)callback, context);

    tn_engine_unlock(engine);
    return st;
}

/* ---- private pools ---- */

static enum tarn_status native_begin_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                          tarn_pool_filter filter, void *context,
                                          struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const enum tarn_status st =
        tn_private_pool_begin(&engine->heap.private_pools, id, filter, context, error);

    tn_engine_unlock(engine);
    return st;
}

typedef enum tarn_status pool_action(struct tn_private_pools *pools, struct tarn_pool_id id,
                                     struct tarn_error *error);

static enum tarn_status pool_apply(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                   pool_action *action, struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const enum tarn_status st = action(&engine->heap.private_pools, id, error);

    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_end_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                        struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const enum tarn_status st = tn_private_pool_end(&engine->heap.private_pools, id, error);

    if (st == TARN_OK) {
        tn_capture_order_fini(&engine->waits.order); /* usually the capture has ended */
    }
    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_mark_capture(struct tarn_allocator *allocator, bool begins,
                                            struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const enum tarn_status st =
        tn_private_pools_mark_capture(&engine->heap.private_pools, begins, error);

    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_acquire_pool(struct tarn_allocator *allocator,
                                            struct tarn_pool_id id, struct tarn_error *error)
{
    return pool_apply(allocator, id, tn_private_pool_acquire, error);
}

static enum tarn_status native_create_pool_from(struct tarn_allocator *allocator,
                                                struct tarn_pool_id id,
                                                const struct tarn_pool_source *source,
                                                struct tarn_error *error)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    const enum tarn_status st =
        tn_private_pool_create_from(&engine->heap.private_pools, id, source, error);

    tn_engine_unlock(engine);
    return st;
}

static enum tarn_status native_release_pool(struct tarn_allocator *allocator,
                                            struct tarn_pool_id id, struct tarn_error *error)
{
    return pool_apply(allocator, id, tn_private_pool_release, error);
}

static uint64_t native_pool_use_count(struct tarn_allocator *allocator, struct tarn_pool_id id)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    const struct tn_private_pool *pool = tn_private_pool_find(&engine->heap.private_pools, id);
    const uint64_t count = pool ? (uint64_t)pool->use_count : 0;

    tn_engine_unlock(engine);
    return count;
}

static enum tarn_status native_set_pool_use_on_oom(struct tarn_allocator *allocator,
                                                   struct tarn_pool_id id, bool use_on_oom)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    struct tn_private_pool *pool = tn_private_pool_find(&engine->heap.private_pools, id);

    if (pool) {
        pool->use_on_oom = use_on_oom;
    }
    tn_engine_unlock(engine);
    return pool ? TARN_OK : TARN_ERR_NOT_FOUND;
}

static enum tarn_status native_set_pool_no_split(struct tarn_allocator *allocator,
                                                 struct tarn_pool_id id, bool no_split)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock(engine);
    struct tn_private_pool *pool = tn_private_pool_find(&engine->heap.private_pools, id);

    if (pool) {
        pool->no_split = no_split;
    }
    tn_engine_unlock(engine);
    return pool ? TARN_OK : TARN_ERR_NOT_FOUND;
}

static enum tarn_status native_sleep(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                     const struct tarn_sleep_options *options,
                                     struct tarn_error *error)
{
    return tn_sleep_begin(tn_allocator_engine(allocator), id, options, error);
}

static enum tarn_status native_wake(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                    struct tarn_error *error)
{
    return tn_sleep_end(tn_allocator_engine(allocator), id, error);
}

static bool native_is_asleep(struct tarn_allocator *allocator, struct tarn_pool_id id)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    const struct tn_private_pool *pool = tn_private_pool_find(&engine->heap.private_pools, id);
    const bool sleeps = pool && pool->sleeps;

    tn_engine_unlock(engine);
    return sleeps;
}

static void native_get_sleep_stats(struct tarn_allocator *allocator,
                                   struct tarn_sleep_stats *stats_out)
{
    struct tn_engine *engine = tn_allocator_engine(allocator);

    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    tn_sleep_read(engine, stats_out);
    tn_engine_unlock(engine);
}

static enum tarn_status native_get_checkpoint(struct tarn_allocator *allocator,
                                              struct tarn_pool_id id,
                                              struct tarn_checkpoint **checkpoint_out,
                                              struct tarn_error *error)
{
    return tn_checkpoint_get(tn_allocator_engine(allocator), id, checkpoint_out, error);
}

static enum tarn_status native_set_checkpoint(struct tarn_allocator *allocator,
                                              const struct tarn_checkpoint *checkpoint,
                                              struct tarn_checkpoint_delta *delta_out,
                                              struct tarn_error *error)
{
    const struct tn_checkpoint_order by_address = {0};

    return tn_checkpoint_set(tn_allocator_engine(allocator), checkpoint, &by_address, delta_out,
                             error);
}

static enum tarn_status native_check_pool_live(struct tarn_allocator *allocator,
                                               struct tarn_pool_id id, const tarn_ptr *expected,
                                               size_t count, bool *live_out,
                                               struct tarn_error *error)
{
    return tn_checkpoint_check_live(tn_allocator_engine(allocator), id, expected, count, live_out,
                                    error);
}

const struct tn_engine_methods tn_native_methods = {
    .name = "native",
    .backend = "native",
    .destroy = native_destroy,
    .alloc = native_alloc,
    .alloc_at = native_alloc_at,
    .free = native_free,
    .record_stream = native_record_stream,
    .empty_cache = native_empty_cache,
    .trim = native_trim,
    .base_allocation = native_base_allocation,
    .block_size = native_block_size,
    .cache_info = native_cache_info,
    .ipc_export = native_ipc_export,
    .set_enabled = native_set_enabled,
    .is_enabled = native_is_enabled,
    .set_fraction = native_set_fraction,
    .get_limit = native_get_limit,
    .get_config = native_get_config,
    .set_config = native_set_config,
    .get_stats = native_get_stats,
    .get_pool_reserved = native_get_pool_reserved,
    .get_expandable_segments = native_get_expandable_segments,
    .get_page_stats = native_get_page_stats,
    .observe = native_observe,
    .reset_peak_stats = native_reset_peak_stats,
    .reset_accumulated_stats = native_reset_accumulated_stats,
    .check = native_check,
    .walk = native_walk,
    .look = native_look,
    .add_sink = native_add_sink,
    .set_sink = native_set_sink,
    .remove_sink = native_remove_sink,
    .annotate = native_annotate,
    .mark_snapshot = native_mark_snapshot,
    .add_oom_observer = native_add_oom_observer,
    .add_memory_callback = native_add_memory_callback,
    .begin_pool = native_begin_pool,
    .end_pool = native_end_pool,
    .mark_capture = native_mark_capture,
    .acquire_pool = native_acquire_pool,
    .create_pool_from = native_create_pool_from,
    .release_pool = native_release_pool,
    .pool_use_count = native_pool_use_count,
    .set_pool_use_on_oom = native_set_pool_use_on_oom,
    .set_pool_no_split = native_set_pool_no_split,
    .sleep = native_sleep,
    .wake = native_wake,
    .is_asleep = native_is_asleep,
    .get_sleep_stats = native_get_sleep_stats,
    .get_checkpoint = native_get_checkpoint,
    .set_checkpoint = native_set_checkpoint,
    .check_pool_live = native_check_pool_live,
};
