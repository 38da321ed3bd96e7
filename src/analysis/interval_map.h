/* SPDX-License-Identifier: MIT */
/*
 * Which of a list of address ranges holds an address: the first one of the list that does. Ranges
 * may overlap; of each only what no earlier one holds is kept, as pieces that do not overlap.
 *
 * Owns: the pieces, at most two a range, and the stretches that they cover without a gap. Guarded
 * by its owner. Cost: O(log n) a search, the same on average an addition, however the ranges lie.
 */
#ifndef TN_ANALYSIS_INTERVAL_MAP_H
#define TN_ANALYSIS_INTERVAL_MAP_H

#include "base/chunked_vec.h"
#include "base/tree.h"

struct tn_interval_map {
    struct tn_budget budget; /* without a limit */
    struct tn_tree pieces;
    struct tn_tree runs; /* stretches: no two touch */
    struct tn_chunked_vec items;
};

/* A range as it was added. */
struct tn_range {
    uint64_t start;
    uint64_t label; /* the caller's */
};

void tn_interval_map_init(struct tn_interval_map *map);
void tn_interval_map_fini(struct tn_interval_map *map);

/* Adds [start, start + size), cut at the end of the address space; false when host memory is
 * missing. */
bool tn_interval_map_add(struct tn_interval_map *map, uint64_t start, uint64_t size,
                         uint64_t label) TN_MUST_CHECK;

/* NULL when no range holds it. Borrowed until the map goes. */
const struct tn_range *tn_interval_map_find(const struct tn_interval_map *map, uint64_t address);

#endif
