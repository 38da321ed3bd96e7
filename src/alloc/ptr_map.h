/* SPDX-License-Identifier: MIT */
/*
 * Device address to block, for the blocks that are handed out: exact addresses only.
 *
 * Open addressing with linear probing; removal closes the gap, so that there are no tombstones. The
 * load stays between 1/8 and 5/8. Inserting may need host memory and is prepared beforehand with
 * tn_ptr_map_reserve; removing never fails. Guarded by the engine's lock. Cost: O(1) expected.
 */
#ifndef TN_ALLOC_PTR_MAP_H
#define TN_ALLOC_PTR_MAP_H

#include "alloc/core.h"
#include "base/attr.h"

#include <stddef.h>

struct tn_ptr_slot {
    uint64_t address; /* 0 = empty */
    struct tn_block *block;
};

/* All zero is an empty map. */
struct tn_ptr_map {
    struct tn_ptr_slot *slots;
    uint64_t count;
    uint64_t capacity; /* a power of two, or 0 */
    unsigned shift;    /* 64 - log2(capacity) */
};

void tn_ptr_map_fini(struct tn_ptr_map *map);

/* Makes room for `more` insertions; false when host memory is missing. */
bool tn_ptr_map_reserve(struct tn_ptr_map *map, uint64_t more) TN_MUST_CHECK;

/* Room must have been reserved; the address is not in the map. */
void tn_ptr_map_insert(struct tn_ptr_map *map, struct tn_block *block);

/* NULL when the address is not in the map. */
struct tn_block *tn_ptr_map_find(const struct tn_ptr_map *map, uint64_t address);

/* The same, and takes it out. */
struct tn_block *tn_ptr_map_take(struct tn_ptr_map *map, uint64_t address);

/* Host bytes held. */
size_t tn_ptr_map_memory(const struct tn_ptr_map *map);

#endif
