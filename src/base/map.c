/* SPDX-License-Identifier: MIT */
#include "base/map.h"

#include "base/assertion.h"
#include "base/bits.h"
#include "base/checked.h"
#include "base/host_mem.h"

enum {
    FIRST_CAPACITY = 64
};

static uint64_t map_next(const struct tn_map *map, uint64_t at)
{
    return (at + 1) & (map->capacity - 1);
}

static void map_put(struct tn_map *map, struct tn_map_slot slot)
{
    uint64_t at = tn_map_home(map, slot.key);

    while (map->slots[at].key != 0) {
        at = map_next(map, at);
    }
    map->slots[at] = slot;
}

/* Rehashes to another capacity; false, changing nothing, when host memory runs out. */
static TN_COLD bool map_resize(struct tn_map *map, uint64_t capacity)
{
    struct tn_map moved = {
        .count = map->count,
        .capacity = capacity,
        .shift = 64 - tn_log2_floor(capacity),
    };
    size_t bytes;

    if (!tn_mul_size(capacity, sizeof *moved.slots, &bytes)) {
        return false;
    }
    moved.slots = tn_host_alloc_zero(bytes);
    if (!moved.slots) {
        return false;
    }
    for (uint64_t i = 0; i < map->capacity; i++) {
        if (map->slots[i].key != 0) {
            map_put(&moved, map->slots[i]);
        }
    }
    tn_map_fini(map);
    *map = moved;
    return true;
}

void tn_map_fini(struct tn_map *map)
{
    tn_host_free(map->slots, map->capacity * sizeof *map->slots);
    *map = (struct tn_map){0};
}

bool tn_map_reserve(struct tn_map *map, uint64_t more)
{
    uint64_t capacity = map->capacity ? map->capacity : FIRST_CAPACITY;
    uint64_t needed;
    uint64_t eighths;

    if (!tn_add_u64(map->count, more, &needed) || !tn_mul_u64(needed, 8, &eighths)) {
        return false;
    }
    if (tn_likely(eighths <= map->capacity * 5)) {
        return true;
    }
    while (capacity < (eighths + 4) / 5) {
        capacity *= 2;
    }
    return map_resize(map, capacity);
}

void tn_map_insert(struct tn_map *map, uint64_t key, uint64_t value)
{
    tn_assert(map->count < map->capacity && key != 0);
    tn_assert_slow(!tn_map_find(map, key));
    map_put(map, (struct tn_map_slot){.key = key, .value = value});
    map->count++;
}

uint64_t *tn_map_find(const struct tn_map *map, uint64_t key)
{
    if (map->count == 0 || key == 0) {
        return NULL;
    }
    uint64_t at = tn_map_home(map, key);

    while (map->slots[at].key != key) {
        if (map->slots[at].key == 0) {
            return NULL;
        }
        at = map_next(map, at);
    }
    return &map->slots[at].value;
}

/* Closes a gap: moves later entries of the probe sequence into it if that brings them closer to
 * their home slot. */
static void map_close_gap(struct tn_map *map, uint64_t gap)
{
    for (uint64_t at = map_next(map, gap); map->slots[at].key != 0; at = map_next(map, at)) {
        const uint64_t home = tn_map_home(map, map->slots[at].key);

        if (((at - home) & (map->capacity - 1)) >= ((at - gap) & (map->capacity - 1))) {
            map->slots[gap] = map->slots[at];
            gap = at;
        }
    }
    map->slots[gap] = (struct tn_map_slot){0};
}

void tn_map_remove(struct tn_map *map, uint64_t *value)
{
    struct tn_map_slot *slot =
        (struct tn_map_slot *)(void *)((char *)value - offsetof(struct tn_map_slot, value));

    map_close_gap(map, (uint64_t)(slot - map->slots));
    map->count--;
    if (tn_unlikely(map->capacity > FIRST_CAPACITY && map->count * 8 < map->capacity)) {
        (void)map_resize(map, map->capacity / 2); /* if this fails the table just stays large */
    }
}

bool tn_map_take(struct tn_map *map, uint64_t key, uint64_t *value_out)
{
    uint64_t *value = tn_map_find(map, key);

    if (!value) {
        return false;
    }
    *value_out = *value;
    tn_map_remove(map, value);
    return true;
}
