/* SPDX-License-Identifier: MIT */
/*
 * How many bytes each block of a trace has. Traces record requests only. A block has its request
 * rounded as the settings say, or more: the remainder that was not split off. How much that is
 * follows from the free block that served the request, which ended where the next block began,
 * or the segment; so the trace is read backwards from the end, where the snapshot has the blocks.
 *
 * Exact, except for blocks of the large pool from before the trace that the trace frees: if nothing
 * was allocated behind one, up to 1 MiB of the free memory there may have been part of it.
 *
 * Owns: the table, of blocks with more than the rounded request. Immutable once made. Cost: O(1)
 * expected for each entry, O(log segments) where a block can have more; a search in the table for
 * each block.
 */
#ifndef TN_ANALYSIS_BLOCK_EXTENT_H
#define TN_ANALYSIS_BLOCK_EXTENT_H

#include "analysis/split_rule.h"
#include "analysis/trace_source.h"
#include "base/vec.h"

/* A block that does not have just its rounded request. */
struct tn_block_extent {
    uint64_t key; /* entry of the allocation; of a block from before the trace, its address */
    uint64_t size;
};

struct tn_block_extents {
    struct tn_split_rule rule;
    struct tn_vec allocated; /* struct tn_block_extent, by entry */
    struct tn_vec before;    /* struct tn_block_extent, by address */
};

/* False when host memory is missing; then there is nothing to release. */
bool tn_block_extents_init(struct tn_block_extents *extents,
                           const struct tn_trace_source *source) TN_MUST_CHECK;
void tn_block_extents_fini(struct tn_block_extents *extents);

/* Bytes of the block that entry `start` allocated, TN_NEVER: that was there before the trace. */
uint64_t tn_block_extent_of(const struct tn_block_extents *extents, uint64_t start,
                            uint64_t address, uint64_t requested);

/* The same for blocks that the trace allocated, in the order of their allocations: without a
 * search. *next is where the next one begins, at first 0. */
uint64_t tn_block_extent_next(const struct tn_block_extents *extents, size_t *next, uint64_t start,
                              uint64_t requested);

#endif
