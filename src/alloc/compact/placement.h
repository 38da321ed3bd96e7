/* SPDX-License-Identifier: MIT */
/*
 * Where a request goes for which pages have to be mapped: where the fewest are missing, then in the
 * smallest hole, then at the lowest address. A hole is a run of idle blocks of one segment,
 * mapped or not. Guarded by the heap's lock. Cost: linear in the unmapped ranges of the set and
 * what is free around them.
 */
#ifndef TN_ALLOC_COMPACT_PLACEMENT_H
#define TN_ALLOC_COMPACT_PLACEMENT_H

#include "alloc/compact/retired.h"

struct tn_placement {
    struct tn_segment *segment;
    struct tn_block *block; /* idle; the place begins in it */
    uint64_t address;       /* the block's own, or of a page in it if it is unmapped */
    uint64_t missing;       /* pages */
    uint64_t hole;          /* bytes */
};

/* The best place for `size` bytes, anywhere in a hole or only at its beginning (and where that is
 * retired, behind what is); false if there is none. */
bool tn_placement_find(const struct tn_heap *heap, const struct tn_retired *retired,
                       const struct tn_free_set *set, uint64_t size, bool anywhere,
                       struct tn_placement *placement_out);

/* Finds the block of the place again, after pages outside the place were taken. */
void tn_placement_renew(const struct tn_free_set *set, struct tn_placement *place);

#endif
