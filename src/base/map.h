/* SPDX-License-Identifier: MIT */
/*
 * A hash map from 64-bit keys (not 0) to 64-bit values.
 *
 * Open addressing with linear probing; removal closes the gap, so that there are no tombstones. The
 * load stays between 1/8 and 5/8. Only tn_map_reserve allocates; after it, inserting cannot fail,
 * and removing never fails. Guarded by its owner. Cost: O(1) expected.
 */
#ifndef TN_BASE_MAP_H
#define TN_BASE_MAP_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_map_slot {
    uint64_t key; /* 0 = empty */
    uint64_t value;
};

/* All zero is an empty map. */
struct tn_map {
    struct tn_map_slot *slots;
    uint64_t count;
    uint64_t capacity; /* a power of two, or 0 */
    unsigned shift;    /* 64 - log2(capacity) */
};

void tn_map_fini(struct tn_map *map);

/* Reserves space for `more` insertions; false when host memory runs out. */
bool tn_map_reserve(struct tn_map *map, uint64_t more) TN_MUST_CHECK;

/* Space must have been reserved; the key must not be in the map. */
void tn_map_insert(struct tn_map *map, uint64_t key, uint64_t value);

/* Value of the key, borrowed until the map changes; NULL when the key is not in the map. */
uint64_t *tn_map_find(const struct tn_map *map, uint64_t key);

/* Where a key is unless that slot was taken. Multiplicative hashing: the high bits of the product
 * are well mixed. */
static inline uint64_t tn_map_home(const struct tn_map *map, uint64_t key)
{
    return (key * 0x9e3779b97f4a7c15u) >> map->shift;
}

/* The same as tn_map_find, without a call for most keys that are in the map. */
static inline uint64_t *tn_map_find_fast(const struct tn_map *map, uint64_t key)
{
    if (map->count > 0 && key != 0) {
        struct tn_map_slot *slot = &map->slots[tn_map_home(map, key)];

        if (slot->key == key) {
            return &slot->value;
        }
    }
    return tn_map_find(map, key);
}

/* Removes the entry that tn_map_find just found. */
void tn_map_remove(struct tn_map *map, uint64_t *value);

/* Removes the key; false when it is not in the map. */
bool tn_map_take(struct tn_map *map, uint64_t key, uint64_t *value_out);

#endif
