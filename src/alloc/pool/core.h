/* SPDX-License-Identifier: MIT */
/*
 * The terms of the allocator and the structures that its files share.
 *
 *   segment   memory taken from the device in one piece, or one reserved address range that grows
 *   block     part of a segment: allocated, waiting for streams, free or, in an expandable segment,
 *             not mapped. The blocks of a segment cover it without gaps, linked in address order
 *   free set  the free blocks of one pool on one stream, ordered by (size, address) or, with
 *             rules:2.14, by (size, number of the segment, address)
 *   pool      free sets by stream. There is one pool for small and one for large requests, and such
 *             a pair for each private pool
 *
 * Invariants (core_check.c checks them all):
 *   I1  for neighbours a, b = a->next: b->prev == a and a->address + a->size == b->address
 *   I2  sizes and addresses of blocks are multiples of 512; no size is 0
 *   I3  no two idle neighbours are both mapped or both not: they would have been merged
 *   I4  a block is exactly one of: in the pointer map (allocated), waiting (uses != 0), in its free
 *       set (free), in its set's unmapped ranges (not mapped)
 *   I5  every counter equals what a walk over all blocks gives
 *   I6  reserved bytes are the sum of the sizes of all mapped blocks
 *   I7  free sets have the order that the settings ask for
 *
 * The heap's lock guards everything here.
 */
#ifndef TN_ALLOC_POOL_CORE_H
#define TN_ALLOC_POOL_CORE_H

#include "base/tree.h"
#include "tarn/base.h"

#include <assert.h>
#include <stdbool.h>

struct tn_expandable;
struct tn_free_set;
struct tn_pool;
struct tn_private_pool;

/* One cache line, from the slab in block.c. */
struct tn_block {
    uint64_t address;
    uint64_t size;           /* bytes */
    uint64_t requested_size; /* what the caller asked for; stale while free, as in PyTorch */
    struct tn_block *prev;   /* neighbour below in the segment, NULL at its start */
    struct tn_block *next;   /* neighbour above, NULL at its end */
    struct tn_free_set *set; /* where it goes when free; says which pool and stream it belongs to */
    union {
        uint64_t stack;  /* allocated or waiting: stack id of the allocation */
        int64_t gc_base; /* in its free set: the pool's find_count when it went in */
        uint64_t link;   /* the same, if its slot is TN_SLOT_LINKED: see linked.h */
    } u;
    uint32_t uses;       /* index of its record of streams and events (stream_use.h), 0 = none */
    bool allocated;      /* allocated */
    bool mapped;         /* backed by memory; false only in expandable segments */
    bool expandable : 1; /* part of an expandable segment */
    bool was_split : 1;  /* at the start of a segment: split since the segment has its stack */
    uint8_t slot;        /* free: its slot in a bin, or one of the following */
};

static_assert(sizeof(struct tn_block) == 64, "a block node is one cache line");

/* Of free blocks that are in no bin. */
enum {
    TN_SLOT_FAR = UINT8_MAX - 1, /* bins cannot hold it (free_set.h) */
    TN_SLOT_LINKED = UINT8_MAX   /* the host had no memory for its place in a bin (linked.h) */
};

/* PyTorch's is_split: the segment has other blocks. */
static inline bool tn_block_is_split(const struct tn_block *block)
{
    return ((uintptr_t)block->prev | (uintptr_t)block->next) != 0; /* one branch, not two */
}

/* Whether neighbours may merge with it or grow into it: not allocated, and waiting for nothing. An
 * unmapped block is idle, too. */
static inline bool tn_block_is_idle(const struct tn_block *block)
{
    return ((uint32_t)block->allocated | block->uses) == 0; /* one branch, not two */
}

/* PyTorch's "active": allocated, or still waiting for streams. */
static inline bool tn_block_is_active(const struct tn_block *block)
{
    return block->allocated || block->uses != 0;
}

/* One segment from the device, or one expandable segment (one reserved range). */
struct tn_segment {
    struct tn_tree_node node; /* in the heap's tree, by address */
    struct tn_segment *older; /* segments by age (segment_map.h) */
    struct tn_segment *newer;
    uint64_t address;
    uint64_t number;                  /* 1, 2, ... in the order in which they were made */
    uint64_t place;                   /* of its first byte in the order by age */
    uint64_t size;                    /* bytes; of an expandable segment all reserved addresses */
    struct tn_block *first;           /* block at `address`; always the same node */
    struct tn_expandable *expandable; /* expandable segments: their pages; else NULL */
    uint64_t stack;                   /* stack id of the segment's allocation */
};

#endif
