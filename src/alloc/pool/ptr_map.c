/* SPDX-License-Identifier: MIT */
#include "alloc/pool/ptr_map.h"

#include "base/assertion.h"
#include "base/checked.h"
#include "base/host_mem.h"

enum {
    FIRST_BUCKETS = 8
};

static size_t map_bytes(uint64_t buckets)
{
    return buckets * TN_BUCKET * sizeof(uint64_t);
}

static uint64_t map_next(const struct tn_ptr_map *map, uint64_t bucket)
{
    return (bucket + 1) & (map->buckets - 1);
}

static uint64_t map_home(const struct tn_ptr_map *map, uint64_t entry)
{
    return tn_ptr_bucket(map, tn_ptr_hash(tn_ptr_entry_block(entry)->address));
}

/* Moves everything to a table of another size; false and unchanged when host memory is missing. */
static TN_COLD bool map_resize(struct tn_ptr_map *map, uint64_t buckets)
{
    struct tn_ptr_map moved = {
        .entries = tn_host_alloc_zero(map_bytes(buckets)),
        .buckets = buckets,
        .shift = 64 - tn_log2_floor(buckets),
        .keeps_room = map->keeps_room,
    };

    if (!moved.entries) {
        return false;
    }
    for (uint64_t i = 0; i < map->buckets * TN_BUCKET; i++) {
        if (map->entries[i] != 0) {
            (void)tn_ptr_map_insert(&moved, tn_ptr_entry_block(map->entries[i]));
        }
    }
    tn_ptr_map_fini(map);
    *map = moved;
    return true;
}

void tn_ptr_map_fini(struct tn_ptr_map *map)
{
    tn_host_free(map->entries, map_bytes(map->buckets));
    *map = (struct tn_ptr_map){0};
}

bool tn_ptr_map_grow(struct tn_ptr_map *map, uint64_t more)
{
    uint64_t needed;
    uint64_t buckets = map->buckets ? map->buckets : FIRST_BUCKETS;

    if (!tn_add_u64(map->count, more, &needed) ||
        tn_never(needed > SIZE_MAX / sizeof(uint64_t) / 4)) { /* more than any host has blocks */
        return false;
    }
    while (tn_ptr_map_room(buckets) < needed) {
        buckets *= 2;
    }
    return map_resize(map, buckets);
}

uint64_t *tn_ptr_map_slot_beyond(const struct tn_ptr_map *map, uint64_t bucket, uint64_t address)
{
    const uint64_t tag = tn_ptr_tag(tn_ptr_hash(address));
    uint64_t *slot = NULL;

    while (!slot && tn_bucket_holes(&map->entries[bucket * TN_BUCKET]) == 0) {
        bucket = map_next(map, bucket);
        slot = tn_bucket_find(&map->entries[bucket * TN_BUCKET], tag, address);
    }
    return slot;
}

void tn_ptr_map_insert_beyond(struct tn_ptr_map *map, uint64_t bucket, uint64_t entry)
{
    unsigned holes;

    do { /* most entries are unused */
        bucket = map_next(map, bucket);
        holes = tn_bucket_holes(&map->entries[bucket * TN_BUCKET]);
    } while (holes == 0);
    map->entries[bucket * TN_BUCKET + tn_lowest_bit(holes)] = entry;
}

/* An entry of `from` that would be in `bucket` or before it if there had been room, or NULL. */
static uint64_t *bucket_find_guest(const struct tn_ptr_map *map, uint64_t from, uint64_t bucket)
{
    const uint64_t mask = map->buckets - 1;

    for (unsigned i = 0; i < TN_BUCKET; i++) {
        uint64_t *slot = &map->entries[from * TN_BUCKET + i];

        if (*slot != 0 && ((from - map_home(map, *slot)) & mask) >= ((from - bucket) & mask)) {
            return slot;
        }
    }
    return NULL;
}

/* The bucket of `hole` was full, so searches continued past it. Moves an entry into it that they
 * would no longer find, and goes on with the hole that this leaves. */
static void map_fill(struct tn_ptr_map *map, uint64_t *hole)
{
    uint64_t bucket = (uint64_t)(hole - map->entries) / TN_BUCKET;
    uint64_t from = bucket;
    bool was_full;

    do {
        from = map_next(map, from);
        was_full = tn_bucket_holes(&map->entries[from * TN_BUCKET]) == 0;
        uint64_t *guest = bucket_find_guest(map, from, bucket);

        if (guest) {
            *hole = *guest;
            *guest = 0;
            hole = guest;
            bucket = from;
        }
    } while (was_full);
}

void tn_ptr_map_removed(struct tn_ptr_map *map, uint64_t *slot, bool was_full)
{
    if (was_full) {
        map_fill(map, slot);
    }
    if (map->buckets > FIRST_BUCKETS && map->count * 8 < map->buckets && !map->keeps_room) {
        (void)map_resize(map, map->buckets / 2); /* without host memory it stays large */
    }
}

size_t tn_ptr_map_memory(const struct tn_ptr_map *map)
{
    return map_bytes(map->buckets);
}
