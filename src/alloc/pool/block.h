/* SPDX-License-Identifier: MIT */
/*
 * Block nodes: where they come from, and the two things that happen to them, splitting and merging.
 *
 * Nodes are 64 bytes and come from chunks of 16 KiB at addresses that are multiples of 16 KiB, so
 * that a node finds its chunk by masking. A chunk goes back to the host when its last node is free
 * (one empty chunk is kept). Nodes that live long should have a slab of their own, or a few of them
 * keep many chunks alive. The caller holds the lock that guards the slab. Cost: O(1).
 */
#ifndef TN_ALLOC_POOL_BLOCK_H
#define TN_ALLOC_POOL_BLOCK_H

#include "alloc/pool/core.h"
#include "base/assertion.h"
#include "base/attr.h"

#include <stddef.h>

struct tn_block_chunk;

/* All zero is an empty slab. */
struct tn_block_slab {
    struct tn_block_chunk *partial; /* chunks with free nodes */
    struct tn_block_chunk *spare;   /* one empty chunk, or NULL */
    uint64_t live;                  /* nodes in use */
    uint64_t chunks;                /* chunks held, the spare one included */
};

/* Every node must have been given back. */
void tn_block_slab_fini(struct tn_block_slab *slab);

/* A node with every field zero, or NULL when host memory is missing. */
struct tn_block *tn_block_create(struct tn_block_slab *slab) TN_MUST_CHECK;
void tn_block_destroy(struct tn_block *block);

/* Host bytes held. */
size_t tn_block_slab_memory(const struct tn_block_slab *slab);

/* Cuts `block` after `size` bytes (0 < size < block->size) and makes `remainder`, a node fresh from
 * the slab, the part behind. The remainder takes over set, state flags and the stale requested
 * size; the front keeps its own. Neither is put into or taken out of a set. */
static inline void tn_block_split(struct tn_block *block, uint64_t size, struct tn_block *remainder)
{
    struct tn_block *next = block->next;
    struct tn_block **back = next ? &next->prev : &remainder->prev; /* a selection, no branch */

    tn_assert(size > 0 && size < block->size);
    *back = remainder;
    *remainder = (struct tn_block){
        .address = block->address + size,
        .size = block->size - size,
        .requested_size = block->requested_size,
        .prev = block,
        .next = next,
        .set = block->set,
        .mapped = block->mapped,
        .expandable = block->expandable,
    };
    block->next = remainder;
    block->size = size;
}

/* Makes `block` cover its next neighbour, whose node is unlinked and must then be destroyed by the
 * caller. */
static inline void tn_block_absorb_next(struct tn_block *block)
{
    struct tn_block *gone = block->next;
    struct tn_block *next = gone->next;
    struct tn_block **back = next ? &next->prev : &gone->prev; /* as above */

    tn_assert(block->address + block->size == gone->address);
    *back = block;
    block->size += gone->size;
    block->next = next;
}

#endif
