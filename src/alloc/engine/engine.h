/* SPDX-License-Identifier: MIT */
/*
 * The caching engine of one device: all its state, and the few operations that every file of this
 * room needs. Policy is in engine_native.c; the other files are mechanisms and do not decide.
 *
 * Locks: `lock` (rank TN_LOCK_ALLOCATOR) guards every field except those marked; who holds it holds
 * the lanes (lane.h) as well. Device calls are
 * made under it, as PyTorch does, except where `release_lock_on_device_alloc` says otherwise.
 */
#ifndef TN_ALLOC_ENGINE_ENGINE_H
#define TN_ALLOC_ENGINE_ENGINE_H

#include "alloc/engine/counters.h"
#include "alloc/engine/stream_use.h"
#include "alloc/fast/lane.h"
#include "alloc/pool/block.h"
#include "alloc/pool/core.h"
#include "alloc/pool/pool.h"
#include "alloc/pool/private_pool.h"
#include "alloc/pool/ptr_map.h"
#include "base/biased_lock.h"
#include "base/errinfo.h"
#include "device/device_ops.h"
#include "tarn/allocator.h"

#include <stdatomic.h>

enum {
    TN_PEERS_MAX = 64
};

struct tn_oom_observer {
    tarn_oom_observer call;
    void *context;
};

struct tn_memory_callback {
    tarn_memory_callback call;
    void *context;
};

/* A place for a receiver of events; see sinks.h. */
struct tn_sink {
    struct tarn_sink sink;
    bool taken;
    bool on;
};

/* What a call does to the counters of free blocks that are parts of split segments. */
struct tn_split_change {
    int64_t bytes;
    int32_t blocks;
};

/* What every call touches comes first. */
struct tn_engine {
    struct tarn_allocator *owner; /* constant: what callbacks are given */
    struct tarn_device *device;   /* constant */
    struct tn_biased_lock lock;
    _Atomic bool plain;          /* tn_engine_is_plain as it was left; read without the lock, too */
    _Atomic int level;           /* of the sink that captures; also read without the lock */
    _Atomic unsigned sink_count; /* that are on; also read without the lock */
    struct tn_counters counters;
    struct tn_trail trail; /* of streams without a lane */
    struct tn_lanes lanes;

    struct tn_ptr_map map;
    struct tn_pool small;
    struct tn_pool large;
    struct tn_block_slab heads; /* first blocks of segments: a segment that is free again is one */
    struct tn_block_slab slab;  /* all others */
    struct tn_block *spares;    /* nodes put by for splits, linked by `next` */
    uint32_t spare_count;
    uint32_t nodes_in_flight; /* nodes for segments that the device is asked for without the lock */
    struct tn_block *unfiled; /* free blocks that host memory was missing for */
    struct tn_private_pools private_pools;
    struct tn_stream_waits waits;
    struct tarn_config config;
    uint64_t reserved; /* bytes taken from the device: PyTorch's total_allocated_memory */
    uint64_t limit;    /* bytes that may be reserved; TARN_SIZE_UNLIMITED = no limit set */

    struct tn_tree segments; /* struct tn_segment, by address */
    int peers[TN_PEERS_MAX]; /* devices that may read growing segments */
    unsigned peer_count;

    struct tn_oom_observer observers[TARN_OBSERVERS_MAX];
    unsigned observer_count;
    struct tn_memory_callback callbacks[TARN_OBSERVERS_MAX];
    unsigned callback_count;

    const struct tarn_sink *sinks_on[TARN_SINKS_MAX]; /* sink_count of them */
    struct tn_sink sinks[TARN_SINKS_MAX];
    _Atomic(const struct tarn_sink *) capturer; /* also read without the lock; NULL = none */
};

void tn_engine_settle_lanes(struct tn_engine *engine);
void tn_engine_close_lanes(struct tn_engine *engine);

static inline bool tn_engine_has_lanes(const struct tn_engine *engine)
{
    return tn_unlikely(atomic_load_explicit(&engine->lanes.open, memory_order_relaxed));
}

/* The trail of a stream: its lane's, or the one of all streams without a lane. */
static inline struct tn_trail *tn_engine_trail(struct tn_engine *engine, tarn_stream stream)
{
    struct tn_lane *lane =
        tn_engine_has_lanes(engine) ? tn_lanes_find(&engine->lanes, stream) : NULL;

    return lane ? &lane->trail : &engine->trail;
}

static inline void tn_engine_settle_trail(struct tn_engine *engine, struct tn_trail *trail)
{
    if (!tn_trail_is_settled(trail)) {
        tn_trail_settle_slow(engine, trail);
    }
}

/* After that the free blocks of the trail's streams may be changed. */
static inline void tn_engine_forget_trail(struct tn_engine *engine, struct tn_trail *trail)
{
    tn_engine_settle_trail(engine, trail);
    if (trail->end > 0) {
        tn_trail_clear(trail);
    }
}

/* After that all blocks may be looked at. */
static inline void tn_engine_settle(struct tn_engine *engine)
{
    tn_engine_settle_trail(engine, &engine->trail);
    if (tn_engine_has_lanes(engine)) {
        tn_engine_settle_lanes(engine);
    }
}

/* After that anything may be changed: free blocks, the settings, who is served from where. */
static inline void tn_engine_forget(struct tn_engine *engine)
{
    tn_engine_forget_trail(engine, &engine->trail);
    if (tn_engine_has_lanes(engine)) {
        tn_engine_close_lanes(engine);
    }
}

/* With the lock: brings the counters up to date. */
static inline void tn_engine_count(struct tn_engine *engine)
{
    if (tn_engine_has_lanes(engine)) {
        tn_lanes_gather(&engine->lanes, &engine->counters);
    }
    (void)tn_trail_count(&engine->trail, &engine->counters);
}

static inline bool tn_engine_has_sinks(const struct tn_engine *engine)
{
    return tn_unlikely(atomic_load_explicit(&engine->sink_count, memory_order_relaxed) > 0);
}

static inline bool tn_engine_limit_is_set(const struct tn_engine *engine)
{
    return engine->limit != TARN_SIZE_UNLIMITED;
}

/* Whether searches age free blocks: PyTorch counts only with a limit and a threshold. */
static inline bool tn_engine_collects_garbage(const struct tn_engine *engine)
{
    return tn_engine_limit_is_set(engine) && engine->config.garbage_collection_threshold > 0.0;
}

/* Whether the free blocks stay as they are but for calls: see trail.h. */
static inline bool tn_engine_is_calm(const struct tn_engine *engine)
{
    return engine->private_pools.route_count == 0 && engine->waits.pending == 0 &&
           engine->waits.deferred_count == 0 && !tn_engine_collects_garbage(engine);
}

/* Whether nothing makes a call more than a change of the free blocks: nobody listens, there are no
 * lanes. */
static inline bool tn_engine_is_plain(const struct tn_engine *engine)
{
    return !tn_engine_has_sinks(engine) && !tn_engine_has_lanes(engine) &&
           tn_engine_is_calm(engine);
}

/* Takes the lock, for what needs no block; to look at blocks; to change anything. */
static inline void tn_engine_enter(struct tn_engine *engine)
{
    tn_biased_lock_acquire(&engine->lock);
    tn_engine_count(engine);
}

static inline void tn_engine_lock_to_look(struct tn_engine *engine)
{
    tn_engine_enter(engine);
    tn_engine_settle(engine);
}

static inline void tn_engine_lock(struct tn_engine *engine)
{
    tn_engine_enter(engine);
    tn_engine_forget(engine);
}

/* Gives it back. */
static inline void tn_engine_unlock(struct tn_engine *engine)
{
    if (tn_engine_has_lanes(engine)) {
        (void)tn_trail_count(&engine->trail, &engine->counters);
        tn_lanes_spread(&engine->lanes, &engine->counters);
    }
    atomic_store_explicit(&engine->plain, tn_engine_is_plain(engine), memory_order_relaxed);
    tn_biased_lock_release(&engine->lock);
}

bool tn_engine_add_spares(struct tn_engine *engine, uint32_t count) TN_MUST_CHECK;

/* Puts by nodes until `count` are there, so that as many splits cannot fail; false without host
 * memory. */
static inline bool tn_engine_reserve_spares(struct tn_engine *engine, uint32_t count)
{
    return tn_likely(engine->spare_count >= count) || tn_engine_add_spares(engine, count);
}

/* One of the nodes put by; there must be one. */
static inline struct tn_block *tn_engine_take_spare(struct tn_engine *engine)
{
    struct tn_block *node = engine->spares;

    tn_assert(node);
    engine->spares = node->next;
    engine->spare_count--;
    return node;
}

/* Puts an idle, mapped block into its free set. Where host memory is missing it goes to the unfiled
 * list, from where later calls file it: freeing never fails for want of host memory. */
void tn_engine_file(struct tn_engine *engine, struct tn_block *block);

/* Takes an idle block out of wherever it is: free set, unfiled list or unmapped ranges. */
void tn_engine_unfile(struct tn_engine *engine, struct tn_block *block);

/* Files what is in the unfiled list, as far as host memory allows. */
void tn_engine_file_pending(struct tn_engine *engine);

/* Merges a block that is in no set with its idle neighbours, first the one below (PyTorch's
 * try_merge_blocks). Returns the node of the merged block; the requested size is that of `block`.
 * The numbers count what was swallowed. */
struct tn_block *tn_engine_merge(struct tn_engine *engine, struct tn_block *block,
                                 uint32_t *merged_out, uint64_t *merged_bytes_out);

/* Sends an ANNOTATE event about an allocated block to every sink. */
void tn_engine_annotate(struct tn_engine *engine, const struct tn_block *block, const char *text);

/* Sends an event to every sink that is on. */
void tn_engine_emit_slow(struct tn_engine *engine, enum tarn_action action, uint64_t address,
                         uint64_t size, tarn_stream stream, const struct tn_pool *pool,
                         uint64_t stack);

/* Sends both events of a free that is complete at once. */
void tn_engine_emit_free(struct tn_engine *engine, uint64_t address, uint64_t size,
                         tarn_stream stream, const struct tn_pool *pool, uint64_t stack);

static inline void tn_engine_emit(struct tn_engine *engine, enum tarn_action action,
                                  uint64_t address, uint64_t size, tarn_stream stream,
                                  const struct tn_pool *pool, uint64_t stack)
{
    if (tn_unlikely(atomic_load_explicit(&engine->sink_count, memory_order_relaxed) > 0)) {
        tn_engine_emit_slow(engine, action, address, size, stream, pool, stack);
    }
}

/* Merges a block that has become idle with its neighbours and files the result. Returns what that
 * did to the free parts of split segments. */
struct tn_split_change tn_engine_reuse(struct tn_engine *engine, struct tn_block *block);

/* Makes a block reusable that was just freed and waits for nothing: merges it, files it, counts it.
 */
void tn_engine_finish_free(struct tn_engine *engine, struct tn_block *block);

/* The same for a block that has waited for its streams; sends the event. `stack` is that of the
 * operation, 0 to use the allocation's. */
void tn_engine_complete_free(struct tn_engine *engine, struct tn_block *block, uint64_t stack);

/* Asks the sink for it. */
uint64_t tn_engine_capture_slow(const struct tn_engine *engine, enum tarn_context_level level);

/* Stack id for an operation that wants context of `level`; 0 when nobody does. Before the lock. The
 * caller owns one reference: it hands that over or gives it back with tn_engine_drop_stack. */
static inline uint64_t tn_engine_capture(const struct tn_engine *engine,
                                         enum tarn_context_level level)
{
    return tn_likely(atomic_load_explicit(&engine->level, memory_order_relaxed) < (int)level)
               ? 0
               : tn_engine_capture_slow(engine, level);
}

/* References to stacks. With the lock. */
void tn_engine_retain_slow(const struct tn_engine *engine, uint64_t stack);
void tn_engine_release_slow(const struct tn_engine *engine, uint64_t stack);

/* One more reference, to be kept somewhere. */
static inline uint64_t tn_engine_keep_stack(const struct tn_engine *engine, uint64_t stack)
{
    if (tn_unlikely(stack != 0)) {
        tn_engine_retain_slow(engine, stack);
    }
    return stack;
}

static inline void tn_engine_drop_stack(const struct tn_engine *engine, uint64_t stack)
{
    if (tn_unlikely(stack != 0)) {
        tn_engine_release_slow(engine, stack);
    }
}

/* Fails with the device's own text. */
enum tarn_status tn_engine_device_failed(const struct tn_engine *engine, enum tarn_status status,
                                         const char *what, struct tarn_error *error);

#endif
