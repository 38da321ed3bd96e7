/* SPDX-License-Identifier: MIT */
/* Numbers by address, where any 64-bit address may come from a file. */
#ifndef TN_ANALYSIS_ADDRESS_MAP_H
#define TN_ANALYSIS_ADDRESS_MAP_H

#include "base/attr.h"
#include "base/map.h"

/* Keys of tn_map are not 0. The two highest addresses share one: no block begins there. */
static inline uint64_t tn_address_key(uint64_t address)
{
    return address < UINT64_MAX ? address + 1 : UINT64_MAX;
}

/* Sets the number of an address, new or not; false without host memory. */
static inline bool tn_address_put(struct tn_map *map, uint64_t address, uint64_t value)
{
    uint64_t *old = tn_map_find(map, tn_address_key(address));

    if (old) {
        *old = value;
        return true;
    }
    if (!tn_map_reserve(map, 1)) {
        return false;
    }
    tn_map_insert(map, tn_address_key(address), value);
    return true;
}

/* The number, borrowed until the map changes; NULL when the address has none. */
static inline uint64_t *tn_address_find(const struct tn_map *map, uint64_t address)
{
    return tn_map_find_fast(map, tn_address_key(address));
}

/* Requests what tn_address_find will look at. */
static inline void tn_address_prefetch(const struct tn_map *map, uint64_t address)
{
    if (map->count > 0) {
        tn_prefetch(&map->slots[tn_map_home(map, tn_address_key(address))]);
    }
}

#endif
