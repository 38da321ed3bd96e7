/* SPDX-License-Identifier: MIT */
/*
 * One request on its way to a block, and the choice among free blocks: the smallest that is large
 * enough, the lowest address among equals, or with rules:2.14 the oldest segment (the order of
 * free_set.h). Three more settings change that:
 *
 *   expandable segments   of their blocks, one with less room to grow is preferred; a request that
 *                         they may not serve skips them (tn_fit_expandable)
 *   max_split_size        may refuse the block chosen, and then no other is tried
 *                         (tn_fit_is_allowed)
 *   policy:compact        takes a block of the large default pool only if it begins its hole or
 *                         pages may not move now (tn_heap_is_tidy), and else leaves the choice to
 *                         compact/ (tn_request_is_placed)
 *
 * Whether the block is then split is tn_should_split's decision (config/size_class.h).
 *
 * The engine and the fast path both choose here. A choice may depend on the free blocks and
 * unmapped ranges, the request and the settings only: the undo log repeats earlier ones without
 * looking (fast/undo_log.h). What depends on more needs a bit in the heap's `busy`, as ages have,
 * or says so in `is_timed`.
 */
#ifndef TN_ALLOC_POOL_BEST_FIT_H
#define TN_ALLOC_POOL_BEST_FIT_H

#include "alloc/config/size_class.h"
#include "alloc/pool/heap.h"

struct tn_request {
    uint64_t requested;    /* bytes that the caller asked for */
    uint64_t size;         /* rounded */
    uint64_t segment_size; /* what the device would be asked for */
    tarn_stream stream;
    struct tn_pool *pool;
    struct tn_free_set *set; /* of the pool and stream */
    uint64_t stack;
    bool expandable;        /* expandable segments may serve it; false: plain ones only */
    bool rejected;          /* refused because of the limit, before the device was asked */
    bool is_timed;          /* the block found depends on the time: the undo log has no entry */
    struct tn_block *block; /* found: in no set, at least `size` bytes */
};

/* Rounds the request and picks its pool: one of the private pool's two, or of the default ones if
 * `owner` is NULL. */
static TN_INLINE void tn_request_route(struct tn_heap *heap, struct tn_request *request,
                                       struct tn_private_pool *owner)
{
    request->size = tn_round_size(request->requested, &heap->config);
    request->expandable = heap->config.expandable_segments;
    if (tn_likely(!owner)) {
        request->pool = tn_size_is_small(request->size) ? &heap->small : &heap->large;
    } else {
        request->pool = tn_size_is_small(request->size) ? &owner->small : &owner->large;
        request->expandable = request->expandable && !tn_private_pool_has_source(owner);
    }
}

/* Finds the free set, and reserves host memory for everything that follows once a block is found,
 * which then is allocated through this shard. Refuses the per-thread stream. */
TN_MUST_CHECK static TN_INLINE enum tarn_status tn_request_prepare(struct tn_heap *heap,
                                                                   struct tn_shard *shard,
                                                                   struct tn_request *request,
                                                                   struct tarn_error *error)
{
    if (tn_unlikely(tn_stream_is_per_thread(heap->device, request->stream))) {
        return tn_stream_refuse_per_thread(request->stream, error);
    }
    request->set = tn_pool_get_set(request->pool, request->stream);
    if (!request->set || !tn_ptr_map_reserve(&shard->map, 1) ||
        !tn_heap_reserve_spares(heap, shard, 1)) {
        return tn_fail_memory(error);
    }
    tn_free_set_settle(request->set);
    return TARN_OK;
}

/* Whether the block can grow: an unmapped range is after it. Only in expandable segments. */
static inline bool tn_fit_can_grow(const struct tn_block *block)
{
    return block->next && !block->next->mapped;
}

/* Size to which a block can grow: its own and the unmapped range after it. */
static inline uint64_t tn_fit_room(const struct tn_block *block)
{
    return block->size + (tn_fit_can_grow(block) ? block->next->size : 0);
}

/* The choice when the best fit is part of an expandable segment. If those may serve the request,
 * the search goes on while the next block has less room to grow; this is greedy, as in PyTorch, and
 * may end at a plain block. No block after one that cannot grow has less room, because none is
 * smaller. Otherwise the first plain block: after a change of settings, or to borrow from a private
 * pool, the set can hold both kinds. */
static inline struct tn_block *tn_fit_expandable(const struct tn_free_set *set,
                                                 struct tn_block *block, bool expandable)
{
    struct tn_block *next;

    if (!expandable) {
        while (block && block->expandable) {
            block = tn_free_set_next(set, block);
        }
        return block;
    }
    while (tn_fit_can_grow(block) && (next = tn_free_set_next(set, block)) &&
           tn_fit_room(next) < tn_fit_room(block)) {
        block = next;
    }
    return block;
}

/* Whether nothing is free in front of the block: it begins its hole. */
static inline bool tn_fit_is_first(const struct tn_block *block)
{
    return !block->prev || !tn_block_is_idle(block->prev);
}

/* Whether compact/ chooses the place. Pages of private pools stay, and small requests share
 * pages. */
static inline bool tn_request_is_placed(const struct tn_heap *heap,
                                        const struct tn_request *request)
{
    return heap->config.policy == TARN_POLICY_COMPACT && request->expandable &&
           request->pool == &heap->large;
}

/* Whether max_split_size lets this block serve the request: a smaller request takes no oversize
 * block, an oversize request none that is larger by max_non_split_rounding or more. Applies to
 * blocks of expandable segments, too, although these are always split. */
static inline bool tn_fit_is_allowed(const struct tarn_config *config, const struct tn_block *block,
                                     uint64_t size)
{
    return size < config->max_split_size ? block->size < config->max_split_size
                                         : block->size < size + config->max_non_split_rounding;
}

/* The choice under the compact policy when a block fits: NULL if it is to be made in compact/. */
static inline struct tn_block *tn_fit_placed(const struct tn_heap *heap, struct tn_request *request,
                                             struct tn_block *block)
{
    if (tn_fit_is_first(block)) {
        return block;
    }
    request->is_timed = !tn_heap_is_tidy(heap);
    return request->is_timed ? block : NULL;
}

/* Takes the block chosen out of its free set; false if there is none. PyTorch's get_free_block. */
TN_MUST_CHECK static TN_INLINE bool tn_best_fit(struct tn_heap *heap, struct tn_request *request)
{
    struct tn_free_set *set = request->set;

    tn_assert(set);
    if (tn_unlikely(tn_heap_collects_garbage(heap))) {
        request->pool->find_count++;
    }
    const struct tn_found found = tn_free_set_search(set, request->size);
    struct tn_block *block = found.block;

    if (block && block->expandable) {
        block = tn_unlikely(tn_request_is_placed(heap, request))
                    ? tn_fit_placed(heap, request, block)
                    : tn_fit_expandable(set, block, request->expandable);
    }
    if (!block || !tn_fit_is_allowed(&heap->config, block, request->size)) {
        return false;
    }
    if (tn_likely(block == found.block)) {
        tn_free_set_take(set, found);
    } else {
        tn_free_set_remove(set, block);
    }
    request->block = block;
    return true;
}

/* Takes back what a search that found nothing has counted: the engine will search again. */
static inline void tn_fit_uncount(const struct tn_heap *heap, const struct tn_request *request)
{
    if (tn_heap_collects_garbage(heap)) {
        request->pool->find_count--;
    }
}

/* Whether the remainder of the block found is split off. */
static inline bool tn_request_splits(const struct tn_heap *heap, const struct tn_request *request)
{
    const struct tn_private_pool *owner = request->pool->owner;

    return !(owner && owner->no_split) &&
           tn_should_split(request->block->size, request->size, request->pool->is_small,
                           request->expandable, &heap->config);
}

#endif
