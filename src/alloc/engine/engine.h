/* SPDX-License-Identifier: MIT */
/*
 * The caching engine of one device: the heap, blocks that wait for other streams, the fast path,
 * and callbacks. native.c allocates and frees, ladder.c has the fallbacks; this file has the lock.
 *
 * Lock: the heap's (rank TN_LOCK_ALLOCATOR) guards every field except those marked. Taking the lock
 * flushes what the fast path has postponed, as far as the holder needs it. Device calls are made
 * under the lock, as PyTorch does, except where `release_lock_on_device_alloc` says otherwise.
 */
#ifndef TN_ALLOC_ENGINE_ENGINE_H
#define TN_ALLOC_ENGINE_ENGINE_H

#include "alloc/compact/compact.h"
#include "alloc/engine/callback_list.h"
#include "alloc/engine/stream_use.h"
#include "alloc/fast/fast.h"
#include "alloc/pool/heap.h"
#include "tarn/allocator.h"
#include "tarn/sleep.h"

/* The last time the device had no memory: nothing of that size is asked for again for a moment. */
struct tn_refusal {
    uint64_t size; /* bytes; 0 = none */
    uint64_t at_ns;
    int64_t given_back; /* num_device_free at that time */
};

struct tn_engine {
    struct tn_heap heap;
    struct tn_fast fast;
    struct tn_stream_waits waits;
    struct tn_compact compact;        /* under that policy */
    struct tarn_sleep_stats sleeping; /* only what is counted since the creation (sleep.h) */
    struct tarn_allocator *owner;     /* constant: what callbacks are given */

    struct tn_callback_list observers; /* tarn_oom_observer */
    struct tn_callback_list callbacks; /* tarn_memory_callback */
    struct tn_callback_list pressures; /* tarn_pressure_callback */
    struct tn_callback writer;         /* tarn_oom_writer; its `call` is NULL for PyTorch's text */
    uint64_t soft_limit;               /* bytes; TARN_SIZE_UNLIMITED = none */
    struct tn_refusal refusal;
    uint64_t pools_made; /* as handles: the next one's id */
};

/* `engine->owner` must be set. */
void tn_engine_init(struct tn_engine *engine, struct tarn_device *device,
                    const struct tarn_config *config);

/* Gives everything back to the device. */
void tn_engine_fini(struct tn_engine *engine);

/* Whether a call on any stream may change free blocks besides those it is for: there are deferred
 * blocks and no capture, or a capture that may prove some of them reusable; or what is cached is
 * limited. */
static inline bool tn_engine_changes_blocks(const struct tn_engine *engine)
{
    const bool looks_at_deferred = !tn_heap_is_capturing(&engine->heap) ||
                                   engine->heap.config.graph_capture_record_stream_reuse;

    return (engine->waits.deferred_count > 0 && looks_at_deferred) ||
           tn_compact_limits_cache(&engine->heap);
}

/* The bits of tn_heap.busy, except TN_BUSY_CACHES. */
static inline unsigned tn_engine_busy(const struct tn_engine *engine)
{
    const bool some = engine->waits.pending > 0 || engine->heap.private_pools.route_count > 0;

    return (tn_engine_changes_blocks(engine) ? TN_BUSY_BLOCKS : 0U) | (some ? TN_BUSY_SOME : 0U) |
           (tn_heap_collects_garbage(&engine->heap) ? TN_BUSY_AGES : 0U) |
           (tn_heap_has_sinks(&engine->heap) ? TN_BUSY_SINKS : 0U);
}

/* Takes the lock, and flushes what the caller is going to need: the counters, or the blocks as
 * well, or everything before a change. */
static inline void tn_engine_lock_for(struct tn_engine *engine, enum tn_flush what)
{
    tn_biased_lock_acquire(&engine->heap.lock);
    tn_fast_flush(&engine->fast, &engine->heap, what);
}

static inline void tn_engine_lock(struct tn_engine *engine)
{
    tn_engine_lock_for(engine, TN_FLUSH_ALL);
}

static inline void tn_engine_unlock(struct tn_engine *engine)
{
    atomic_store_explicit(&engine->heap.busy, tn_engine_busy(engine), memory_order_relaxed);
    tn_fast_flush(&engine->fast, &engine->heap, TN_FLUSH_END);
    tn_biased_lock_release(&engine->heap.lock);
}

/* Under the lock, or before the engine is shared. */
void tn_engine_apply_config(struct tn_engine *engine, const struct tarn_config *config);
void tn_engine_apply_fraction(struct tn_engine *engine, double fraction);

#endif
