/* SPDX-License-Identifier: MIT */
/*
 * Device address to block, for the blocks that are handed out: exact addresses only. A tn_map whose
 * values are blocks. Guarded by the engine's lock.
 */
#ifndef TN_ALLOC_PTR_MAP_H
#define TN_ALLOC_PTR_MAP_H

#include "alloc/core.h"
#include "base/map.h"

/* Block of a value that tn_map_find gave. */
static inline struct tn_block *tn_ptr_map_block(const uint64_t *value)
{
    return (struct tn_block *)(uintptr_t)*value;
}

static inline struct tn_block *tn_ptr_map_find(const struct tn_map *map, uint64_t address)
{
    const uint64_t *value = tn_map_find(map, address);

    return value ? tn_ptr_map_block(value) : NULL;
}

/* Room must have been reserved. */
static inline void tn_ptr_map_insert(struct tn_map *map, struct tn_block *block)
{
    tn_map_insert(map, block->address, (uint64_t)(uintptr_t)block);
}

#endif
