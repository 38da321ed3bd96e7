/* SPDX-License-Identifier: MIT */
/*
 * The heap of one device: its segments, their blocks, where blocks are found, and their counters.
 * Here is what can be done to a block: insert it into its free set, remove it, coalesce it with
 * free neighbours, mark it allocated, free it. The engine and the fast path call these; they choose
 * free blocks with best_fit.h.
 *
 * Invariants: those of core.h. Lock: `lock` (rank TN_LOCK_ALLOCATOR) guards every field except
 * those marked; every function requires it unless it says otherwise.
 */
#ifndef TN_ALLOC_POOL_HEAP_H
#define TN_ALLOC_POOL_HEAP_H

#include "alloc/pool/core.h"
#include "alloc/pool/failure.h"
#include "alloc/pool/peers.h"
#include "alloc/pool/pool.h"
#include "alloc/pool/private_pool.h"
#include "alloc/pool/segment_map.h"
#include "alloc/pool/shard.h"
#include "base/biased_lock.h"
#include "base/errinfo.h"
#include "base/tree.h"
#include "device/device_ops.h"
#include "tarn/allocator.h"

#include <stdatomic.h>

/* A slot for a receiver of events; see sinks.h. */
struct tn_sink {
    struct tarn_sink sink;
    bool taken;
    bool on;
    bool leaving; /* it is being removed, which waits for calls in progress */
    bool yields;  /* another sink that captures takes its place */
};

/* How a call changes the counters of free parts of split segments. */
struct tn_split_change {
    int64_t bytes;
    int32_t blocks;
};

/* Why the fast path cannot simply serve a call: bits of `busy`. All but the last are set by the
 * engine. */
enum {
    TN_BUSY_BLOCKS = 1, /* every allocation may change free blocks before it takes one */
    TN_BUSY_SOME = 2, /* some may: blocks wait for events, or requests of some streams are routed */
    TN_BUSY_AGES = 4, /* every search ages the free blocks of its pool */
    TN_BUSY_SINKS = 8,  /* somebody receives events */
    TN_BUSY_CACHES = 16 /* streams have caches of their own */
};

/* What every call touches comes first. */
struct tn_heap {
    struct tarn_device *device; /* constant */
    struct tn_biased_lock lock;
    _Atomic unsigned busy;       /* as of the last release of the lock; also read without it */
    _Atomic int level;           /* of the sink that captures; also read without the lock */
    _Atomic unsigned sink_count; /* that are on; also read without the lock */
    struct tn_shard shard;

    struct tn_pool small;
    struct tn_pool large;
    struct tn_block_slab heads; /* first blocks of segments: they live as long as the segment */
    struct tn_block_slab slab;  /* all others */
    uint32_t nodes_in_flight;   /* nodes for segments that the device is being asked for */
    struct tn_private_pools private_pools;
    struct tarn_config config;
    uint64_t reserved;     /* bytes taken from the device: PyTorch's total_allocated_memory */
    uint64_t limit;        /* bytes that may be reserved; TARN_SIZE_UNLIMITED = no limit set */
    uint64_t tidy_from_ns; /* policy:compact, on the device's clock: from then on pages may move to
                              keep together what lives (compact/README.md) */

    struct tn_segment_map segments;
    struct tn_peers peers; /* devices that have access to expandable segments */

    const struct tarn_sink *sinks_on[TARN_SINKS_MAX]; /* sink_count of them */
    struct tn_sink sinks[TARN_SINKS_MAX];
    const struct tarn_sink *_Atomic capturer; /* also read without the lock; NULL = none */
    _Atomic uint32_t captures; /* calls that have asked for a stack and not parted with it: they
                                  begin without the lock and end with it */
};

void tn_heap_init(struct tn_heap *heap, struct tarn_device *device,
                  const struct tarn_config *config);

/* Every segment must be gone. */
void tn_heap_fini(struct tn_heap *heap);

/* Orders free blocks as the settings say: with rules:2.14 by age. The compact policy prefers low
 * addresses whatever the rules are, because it chooses places by them. */
void tn_heap_apply_order(struct tn_heap *heap);

/* Adds a segment that has its address and size, and numbers it. */
void tn_heap_add_segment(struct tn_heap *heap, struct tn_segment *segment);

static inline bool tn_heap_has_sinks(const struct tn_heap *heap)
{
    return tn_unlikely(atomic_load_explicit(&heap->sink_count, memory_order_relaxed) > 0);
}

/* Whether requests may move pages to keep together what lives. */
static inline bool tn_heap_is_tidy(const struct tn_heap *heap)
{
    return heap->device->ops->now_ns(heap->device) >= heap->tidy_from_ns;
}

/* `change` bytes for blocks of the pool were taken from the device, or given back. Nothing else
 * moves what is reserved. */
static inline void tn_heap_count_reserved(struct tn_heap *heap, const struct tn_pool *pool,
                                          int64_t change)
{
    const unsigned kind = tn_counter_pool(pool->is_small);

    heap->reserved += (uint64_t)change;
    tn_counter_change(&heap->shard.counters.reserved, kind, change);
    if (pool->owner) {
        tn_private_pool_count_reserved(pool->owner, kind, change);
    }
}

static inline bool tn_heap_limit_is_set(const struct tn_heap *heap)
{
    return heap->limit != TARN_SIZE_UNLIMITED;
}

/* Whether a graph is being captured: no event may be recorded or asked for, and nothing that waits
 * for the device be done. Up to 2.12 PyTorch takes every routing to a private pool for a capture;
 * since 2.13 captures are announced (pytorch #181830). */
static inline bool tn_heap_is_capturing(const struct tn_heap *heap)
{
    return heap->config.rules == TARN_RULES_2_11 ? heap->private_pools.route_count > 0
                                                 : heap->private_pools.capture_count > 0;
}

/* Whether searches age free blocks: PyTorch counts only with a limit and a threshold. */
static inline bool tn_heap_collects_garbage(const struct tn_heap *heap)
{
    return tn_heap_limit_is_set(heap) && heap->config.garbage_collection_threshold > 0.0 &&
           heap->config.policy == TARN_POLICY_EXACT;
}

bool tn_heap_add_spares(struct tn_heap *heap, struct tn_shard *shard, uint32_t count) TN_MUST_CHECK;

/* Ensures `count` spare nodes, so that as many splits cannot fail; false without host memory. */
static inline bool tn_heap_reserve_spares(struct tn_heap *heap, struct tn_shard *shard,
                                          uint32_t count)
{
    return tn_likely(shard->spare_count >= count) || tn_heap_add_spares(heap, shard, count);
}

/* An allocated block: which shard's map has it, and where. */
struct tn_map_entry {
    struct tn_shard *shard;
    uint64_t *slot; /* NULL: nothing is allocated there. Borrowed until the map changes */
};

struct tn_map_entry tn_heap_look_up_slow(struct tn_shard *shard, tarn_ptr ptr);

static inline struct tn_map_entry tn_heap_look_up(struct tn_heap *heap, tarn_ptr ptr)
{
    struct tn_shard *shard = &heap->shard;
    uint64_t *slot = tn_ptr_map_slot(&shard->map, ptr);

    return tn_likely(slot || !shard->next) ? (struct tn_map_entry){.shard = shard, .slot = slot}
                                           : tn_heap_look_up_slow(shard->next, ptr);
}

/* Removes what tn_heap_look_up just found. */
static inline void tn_heap_remove_entry(const struct tn_map_entry *entry)
{
    tn_ptr_map_remove(&entry->shard->map, entry->slot);
}

/* The block allocated at that address, or NULL. */
struct tn_block *tn_heap_find(const struct tn_heap *heap, tarn_ptr ptr);

static inline bool tn_block_can_coalesce(const struct tn_block *block,
                                         const struct tn_block *neighbour)
{
    return neighbour && tn_block_is_idle(neighbour) && neighbour->mapped == block->mapped;
}

/* Coalesces a block that is in no set with its idle neighbours (PyTorch's try_merge_blocks; the
 * order does not matter). Returns the node of the result; the requested size is that of `block`.
 * The outputs count the neighbours merged and their bytes.
 *
 * This and the other parts of a free are inline, so that a free that the undo log does not serve is
 * one function. */
static TN_INLINE struct tn_block *tn_heap_coalesce(struct tn_shard *shard, struct tn_block *block,
                                                   uint32_t *merged_out, uint64_t *merged_bytes_out)
{
    struct tn_block *below = block->prev;
    struct tn_block *above = block->next;

    *merged_out = 0;
    *merged_bytes_out = 0;
    if (tn_block_can_coalesce(block, above)) {
        tn_pool_remove(above);
        *merged_out += 1;
        *merged_bytes_out += above->size;
        tn_block_absorb_next(block);
        tn_shard_drop_node(shard, above);
    }
    if (tn_block_can_coalesce(block, below)) {
        tn_pool_remove(below);
        *merged_out += 1;
        *merged_bytes_out += below->size;
        below->requested_size = block->requested_size;
        tn_block_absorb_next(below);
        tn_shard_drop_node(shard, block);
        block = below;
    }
    return block;
}

/* Sends an ANNOTATE event about an allocated block to every sink, with the annotating stack. */
void tn_heap_annotate(struct tn_heap *heap, const struct tn_block *block, const char *text,
                      uint64_t stack);

/* Sends an event to every sink that is on. */
void tn_heap_emit_slow(struct tn_heap *heap, enum tarn_action action, uint64_t address,
                       uint64_t size, tarn_stream stream, const struct tn_pool *pool,
                       uint64_t stack);

/* Sends both events of a free that completes immediately. */
void tn_heap_emit_free(struct tn_heap *heap, uint64_t address, uint64_t size, tarn_stream stream,
                       const struct tn_pool *pool, uint64_t stack);

static inline void tn_heap_emit(struct tn_heap *heap, enum tarn_action action, uint64_t address,
                                uint64_t size, tarn_stream stream, const struct tn_pool *pool,
                                uint64_t stack)
{
    if (tn_unlikely(atomic_load_explicit(&heap->sink_count, memory_order_relaxed) > 0)) {
        tn_heap_emit_slow(heap, action, address, size, stream, pool, stack);
    }
}

/* References to stacks. Under the lock. */
void tn_heap_retain_slow(const struct tn_heap *heap, uint64_t stack);
void tn_heap_release_slow(const struct tn_heap *heap, uint64_t stack);

/* Takes one more reference. */
static inline uint64_t tn_heap_keep_stack(const struct tn_heap *heap, uint64_t stack)
{
    if (tn_unlikely(stack != 0)) {
        tn_heap_retain_slow(heap, stack);
    }
    return stack;
}

static inline void tn_heap_drop_stack(const struct tn_heap *heap, uint64_t stack)
{
    if (tn_unlikely(stack != 0)) {
        tn_heap_release_slow(heap, stack);
    }
}

/* Coalesces a block that has become idle and inserts the result. Returns the change to the free
 * parts of split segments. */
static TN_INLINE struct tn_split_change
tn_heap_make_free(const struct tn_heap *heap, struct tn_shard *shard, struct tn_block *block)
{
    struct tn_split_change change = {0};
    uint32_t merged;
    uint64_t merged_bytes;

    tn_assert(tn_block_is_idle(block));
    tn_heap_drop_stack(heap, block->u.stack);
    block->u.stack = 0;
    block = tn_heap_coalesce(shard, block, &merged, &merged_bytes);
    tn_pool_insert(block);
    if (block->expandable) {
        return change;
    }
    const bool is_part = tn_block_is_split(block);

    change.blocks = (int32_t)is_part - (int32_t)merged;
    change.bytes = (is_part ? (int64_t)block->size : 0) - (int64_t)merged_bytes;
    return change;
}

/* Completes the free of a block that waits for nothing: coalesces, inserts and counts it. */
static TN_INLINE void tn_heap_finish_free(const struct tn_heap *heap, struct tn_shard *shard,
                                          struct tn_block *block)
{
    const unsigned pool = tn_counter_pool(block->set->pool->is_small);
    const uint64_t requested = block->requested_size;
    const struct tn_split_change change = tn_heap_make_free(heap, shard, block);

    tn_counter_change(&shard->counters.split, pool, change.blocks);
    tn_counter_change(&shard->counters.split_bytes, pool, change.bytes);
    tn_counter_decrease(&shard->counters.requested, pool, requested);
}

/* The same for a block that has waited for its streams; sends the event. `stack` is that of the
 * operation, 0 to use the allocation's. */
void tn_heap_complete_free(struct tn_heap *heap, struct tn_block *block, uint64_t stack);

/* What allocating the first `size` bytes of a block, of which `remaining` are left, does to the
 * free parts of split segments: a fresh split adds one, a further split shrinks one, using a whole
 * part removes one. Expandable segments are not counted. */
static inline struct tn_split_change
tn_split_change(const struct tn_block *block, bool already_split, uint64_t size, uint64_t remaining)
{
    if (block->expandable) {
        return (struct tn_split_change){0};
    }
    return (struct tn_split_change){
        .bytes = already_split ? -(int64_t)size : (int64_t)remaining,
        .blocks = (int32_t)(remaining > 0) - (int32_t)already_split,
    };
}

/* Allocates the first `size` bytes of a block that is in no set, as PyTorch's alloc_found_block:
 * splits off the remainder and inserts it, counts, sends the event. There must be a spare node if
 * `split`, and room in the map. The block takes over the caller's reference to `stack`.
 * Inline, so that an allocation that the undo log does not serve is one function. */
static TN_INLINE struct tn_split_change
tn_heap_mark_allocated(struct tn_heap *heap, struct tn_shard *shard, struct tn_block *block,
                       uint64_t size, uint64_t requested, bool split, uint64_t stack)
{
    struct tn_counters *counters = &shard->counters;
    const unsigned pool = tn_counter_pool(block->set->pool->is_small);
    const bool already_split = tn_block_is_split(block);
    struct tn_block *remainder = NULL;

    if (split) {
        remainder = tn_shard_take_spare(shard);
        tn_block_split(block, size, remainder);
        block->was_split = true;
        tn_pool_insert(remainder);
    }
    const struct tn_split_change change =
        tn_split_change(block, already_split, block->size, remainder ? remainder->size : 0);

    tn_counter_change(&counters->split, pool, change.blocks);
    tn_counter_change(&counters->split_bytes, pool, change.bytes);
    block->allocated = true;
    block->requested_size = requested;
    block->u.stack = stack;
    tn_ptr_map_insert(&shard->map, block);
    tn_heap_emit(heap, TARN_ACTION_ALLOC, block->address, requested, block->set->stream,
                 block->set->pool, stack);
    tn_counters_allocate(counters, pool, block->size, requested);
    if (tn_unlikely(block->size >= heap->config.max_split_size)) {
        tn_stat_increase(&counters->totals.oversize_allocations, 1);
    }
    return change;
}

/* Sends the events of a free: that it was requested and, unless it waits, that it is complete. */
void tn_heap_announce_free(struct tn_heap *heap, const struct tn_block *block, bool waits,
                           uint64_t stack);

/* Frees an allocated block, unless it `waits` for streams: then it only stops being allocated. The
 * caller, who found the entry of the pointer map, removes it. */
static TN_INLINE void tn_heap_mark_free(struct tn_heap *heap, struct tn_shard *shard,
                                        struct tn_block *block, bool waits, uint64_t stack)
{
    struct tn_counters *counters = &shard->counters;
    const unsigned pool = tn_counter_pool(block->set->pool->is_small);

    tn_assert(block->allocated);
    tn_prefetch(block->prev); /* coalescing will look at both */
    tn_prefetch(block->next);
    block->allocated = false;
    tn_counters_free(counters, pool, block->size);
    if (tn_unlikely(block->size >= heap->config.max_split_size)) {
        tn_stat_decrease(&counters->totals.oversize_allocations, 1);
    }
    if (tn_heap_has_sinks(heap)) {
        tn_heap_announce_free(heap, block, waits, stack);
    }
    if (waits) {
        tn_counters_begin_wait(counters, pool, block->size);
    } else {
        tn_heap_finish_free(heap, shard, block);
    }
}

/* Asks the capturing sink for a stack. */
uint64_t tn_heap_capture_slow(struct tn_heap *heap, enum tarn_context_level level);

/* Id of the calling stack, for an operation whose context a sink wants at this `level`; 0 if none
 * does. Call it before taking the lock. The caller owns one reference: a block takes it over
 * (tn_heap_end_capture), or it goes back with tn_heap_drop_captured. Until then the sink cannot be
 * removed. */
static inline uint64_t tn_heap_capture(struct tn_heap *heap, enum tarn_context_level level)
{
    return tn_likely(atomic_load_explicit(&heap->level, memory_order_relaxed) < (int)level)
               ? 0
               : tn_heap_capture_slow(heap, level);
}

/* The call has passed its captured stack on. */
static inline void tn_heap_end_capture(struct tn_heap *heap, uint64_t stack)
{
    if (tn_unlikely(stack != 0)) {
        (void)atomic_fetch_sub_explicit(&heap->captures, 1, memory_order_relaxed);
    }
}

/* The call gives its captured stack back. */
static inline void tn_heap_drop_captured(struct tn_heap *heap, uint64_t stack)
{
    tn_heap_drop_stack(heap, stack);
    tn_heap_end_capture(heap, stack);
}

/* A stack that was captured before the lock was taken; 0 if the receivers have been switched off
 * since, because nobody would release it from the block. */
static inline uint64_t tn_heap_keep_if_received(struct tn_heap *heap, uint64_t stack)
{
    if (tn_unlikely(stack != 0) && !tn_heap_has_sinks(heap)) {
        tn_heap_drop_captured(heap, stack);
        return 0;
    }
    return stack;
}

/* Fails with the device's own text. */
enum tarn_status tn_heap_device_failed(const struct tn_heap *heap, enum tarn_status status,
                                       const char *what, struct tarn_error *error);

#endif
