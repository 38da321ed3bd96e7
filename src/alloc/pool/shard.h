/* SPDX-License-Identifier: MIT */
/*
 * What a call changes besides the blocks and free sets of its stream: the counters, the map of
 * allocated blocks, the nodes kept for splits. The heap has one shard. Each stream cache has
 * another, so that calls for different streams change nothing in common (fast/stream_cache.h).
 *
 * A block is in the map of the shard that allocated it; it may be freed through any.
 *
 * Guarded by the heap's lock, or by that of its stream cache.
 */
#ifndef TN_ALLOC_POOL_SHARD_H
#define TN_ALLOC_POOL_SHARD_H

#include "alloc/pool/block.h"
#include "alloc/pool/counters.h"
#include "alloc/pool/ptr_map.h"

struct tn_shard {
    struct tn_counters counters; /* of a cache: changes since the heap last added them to its own */
    struct tn_ptr_map map;       /* allocated blocks by address */
    struct tn_block *spares;     /* nodes kept for splits, linked by `next` */
    uint32_t spare_count;
    uint32_t spares_kept;  /* of nodes that are given up; more go back to the slab */
    struct tn_shard *next; /* of the same heap, whose own comes first */
};

/* One of the spare nodes; there must be one. */
static inline struct tn_block *tn_shard_take_spare(struct tn_shard *shard)
{
    struct tn_block *node = shard->spares;

    tn_assert(node);
    shard->spares = node->next;
    shard->spare_count--;
    return node;
}

static inline void tn_shard_add_spare(struct tn_shard *shard, struct tn_block *node)
{
    node->next = shard->spares;
    shard->spares = node;
    shard->spare_count++;
}

/* Gives up a node that no block needs any more. Only the heap's own shard gives it back to the
 * slab, which the heap's lock guards. */
static inline void tn_shard_drop_node(struct tn_shard *shard, struct tn_block *node)
{
    if (tn_likely(shard->spare_count < shard->spares_kept)) {
        tn_shard_add_spare(shard, node);
    } else {
        tn_block_destroy(node);
    }
}

#endif
