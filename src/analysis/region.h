/* SPDX-License-Identifier: MIT */
/*
 * The segments of a device at any moment of its trace, as ranges of addresses: those of the
 * snapshot with later entries undone, one by one, from the end backwards.
 *
 * Regions do not overlap. Owns: the regions; removed ones stay in the store until the end. Cost:
 * O(log n) an entry that adds or removes memory, O(1) any other.
 */
#ifndef TN_ANALYSIS_REGION_H
#define TN_ANALYSIS_REGION_H

#include "analysis/timeline.h"
#include "base/chunked_vec.h"
#include "base/tree.h"

/* A range of reserved addresses, [start, end). */
struct tn_region {
    struct tn_tree_node node;
    uint64_t start;
    uint64_t end;
    uint64_t segment; /* address of the whole that it is or was a part of */
    struct tn_pool_id pool;
    uint64_t stream;
    bool has_pool; /* else `pool` is a guess: traces of old versions do not say it */
    bool is_large;
    bool is_expandable;
};

struct tn_regions {
    struct tn_budget budget; /* without a limit */
    struct tn_chunked_vec store;
    struct tn_tree tree;
};

/* The regions at the end of the trace. False when host memory is missing; there is nothing to
 * release then. */
bool tn_regions_init(struct tn_regions *regions, const struct tn_timeline *timeline) TN_MUST_CHECK;
void tn_regions_fini(struct tn_regions *regions);

/* Goes from right after that entry to right before it. */
bool tn_regions_undo(struct tn_regions *regions, const struct tn_timeline *timeline,
                     uint64_t entry) TN_MUST_CHECK;

/* The region that holds an address, NULL when none does. Borrowed until regions change. */
const struct tn_region *tn_regions_find(const struct tn_regions *regions, uint64_t address);

/* In order of addresses; NULL at the end. */
const struct tn_region *tn_regions_first(const struct tn_regions *regions);
const struct tn_region *tn_regions_next(const struct tn_region *region);

/* start + size, or the end of the address space. */
static inline uint64_t tn_region_end(uint64_t start, uint64_t size)
{
    return size > UINT64_MAX - start ? UINT64_MAX : start + size;
}

#endif
