/* SPDX-License-Identifier: MIT */
#include "alloc/ptr_map.h"

#include "base/assertion.h"
#include "base/bits.h"
#include "base/host_mem.h"

enum {
    FIRST_CAPACITY = 64
};

/* Multiplicative hashing: the high bits of the product are well mixed. */
static uint64_t map_home(const struct tn_ptr_map *map, uint64_t address)
{
    return ((address >> 9) * 0x9e3779b97f4a7c15u) >> map->shift;
}

static uint64_t map_next(const struct tn_ptr_map *map, uint64_t at)
{
    return (at + 1) & (map->capacity - 1);
}

static void map_put(struct tn_ptr_map *map, struct tn_ptr_slot slot)
{
    uint64_t at = map_home(map, slot.address);

    while (map->slots[at].address != 0) {
        at = map_next(map, at);
    }
    map->slots[at] = slot;
}

/* Moves everything to a table of another capacity; false and unchanged when host memory is missing.
 * */
static TN_COLD bool map_resize(struct tn_ptr_map *map, uint64_t capacity)
{
    struct tn_ptr_map moved = {
        .slots = tn_host_alloc_zero(capacity * sizeof(struct tn_ptr_slot)),
        .count = map->count,
        .capacity = capacity,
        .shift = 64 - tn_log2_floor(capacity),
    };

    if (!moved.slots) {
        return false;
    }
    for (uint64_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].address != 0) {
            map_put(&moved, map->slots[i]);
        }
    }
    tn_ptr_map_fini(map);
    *map = moved;
    return true;
}

void tn_ptr_map_fini(struct tn_ptr_map *map)
{
    tn_host_free(map->slots, map->capacity * sizeof *map->slots);
    *map = (struct tn_ptr_map){0};
}

bool tn_ptr_map_reserve(struct tn_ptr_map *map, uint64_t more)
{
    const uint64_t needed = map->count + more;
    uint64_t capacity = map->capacity ? map->capacity : FIRST_CAPACITY;

    if (tn_likely(needed * 8 <= map->capacity * 5)) {
        return true;
    }
    while (needed * 8 > capacity * 5) {
        capacity *= 2;
    }
    return map_resize(map, capacity);
}

void tn_ptr_map_insert(struct tn_ptr_map *map, struct tn_block *block)
{
    tn_assert(map->count < map->capacity && block->address != 0);
    tn_assert_slow(!tn_ptr_map_find(map, block->address));
    map_put(map, (struct tn_ptr_slot){.address = block->address, .block = block});
    map->count++;
}

struct tn_block *tn_ptr_map_find(const struct tn_ptr_map *map, uint64_t address)
{
    if (map->count == 0 || address == 0) {
        return NULL;
    }
    uint64_t at = map_home(map, address);

    while (map->slots[at].address != address) {
        if (map->slots[at].address == 0) {
            return NULL;
        }
        at = map_next(map, at);
    }
    return map->slots[at].block;
}

/* Moves later entries of the run forward into the gap, as long as that brings them closer to home.
 * */
static void map_close_gap(struct tn_ptr_map *map, uint64_t gap)
{
    for (uint64_t at = map_next(map, gap); map->slots[at].address != 0; at = map_next(map, at)) {
        const uint64_t home = map_home(map, map->slots[at].address);

        if (((at - home) & (map->capacity - 1)) >= ((at - gap) & (map->capacity - 1))) {
            map->slots[gap] = map->slots[at];
            gap = at;
        }
    }
    map->slots[gap] = (struct tn_ptr_slot){0};
}

struct tn_block *tn_ptr_map_take(struct tn_ptr_map *map, uint64_t address)
{
    if (map->count == 0 || address == 0) {
        return NULL;
    }
    uint64_t at = map_home(map, address);

    while (map->slots[at].address != address) {
        if (map->slots[at].address == 0) {
            return NULL;
        }
        at = map_next(map, at);
    }
    struct tn_block *block = map->slots[at].block;

    map_close_gap(map, at);
    map->count--;
    if (tn_unlikely(map->capacity > FIRST_CAPACITY && map->count * 8 < map->capacity)) {
        (void)map_resize(map, map->capacity / 2); /* without host memory it stays large */
    }
    return block;
}

size_t tn_ptr_map_memory(const struct tn_ptr_map *map)
{
    return map->capacity * sizeof *map->slots;
}
