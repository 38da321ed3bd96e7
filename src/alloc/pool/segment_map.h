/* SPDX-License-Identifier: MIT */
/*
 * The segments of a heap: by address, and by age. Also the order of blocks by age: first by the
 * segment, the oldest first, then by address.
 *
 * A segment's `number` is 1, 2, ... in the order in which segments were made. Its `place` is where
 * it begins if all segments are laid end to end in that order, so that the places of two blocks,
 * tn_segment_map_place, are in their order by age: one number, for the keys of bins (bin.h), which
 * hold places below TN_SEGMENT_MAP_END. Segments that are gone leave gaps; when the next place
 * would be beyond that end, the segments are packed: all get new places, in the same order.
 *
 * Invariants: by age, numbers rise and [place, place + size) do not overlap and rise, up to `end`;
 * `bytes` is the sum of all sizes. Owns: nothing. Lock: the heap's to change it, that or a stream
 * cache's to read (fast/stream_cache.h). Cost: O(log n); packing O(n).
 */
#ifndef TN_ALLOC_POOL_SEGMENT_MAP_H
#define TN_ALLOC_POOL_SEGMENT_MAP_H

#include "alloc/pool/core.h"
#include "base/assertion.h"
#include "base/attr.h"

/* 256 TiB, twice what a process can address. */
#define TN_SEGMENT_MAP_END ((uint64_t)1 << 48)

struct tn_segment_map {
    struct tn_tree by_address;
    struct tn_segment *oldest;
    struct tn_segment *newest;
    uint64_t made;  /* segments, ever */
    uint64_t end;   /* no segment has a place from here on */
    uint64_t bytes; /* of all segments: expandable ones with all their addresses */
};

void tn_segment_map_init(struct tn_segment_map *map);

/* Adds a segment that has its address and size as the newest. */
void tn_segment_map_insert(struct tn_segment_map *map, struct tn_segment *segment);
void tn_segment_map_remove(struct tn_segment_map *map, struct tn_segment *segment);

/* Whether a further segment would get a place that keys cannot hold, and packing would help. */
static inline bool tn_segment_map_is_full(const struct tn_segment_map *map, uint64_t size)
{
    return map->end + size > TN_SEGMENT_MAP_END && map->bytes + size <= TN_SEGMENT_MAP_END / 2;
}

/* Gives all segments new places without gaps: whoever keeps places has to look them up again. */
void tn_segment_map_pack(struct tn_segment_map *map);

/* The segment that holds the address; NULL if none does. Inline, because every free looks its place
 * up where blocks are ordered by age. */
static inline struct tn_segment *tn_segment_map_find(const struct tn_segment_map *map,
                                                     uint64_t address)
{
    struct tn_tree_node *node = map->by_address.root;

    while (node) {
        struct tn_segment *segment = TN_TREE_ENTRY(node, struct tn_segment, node);
        const bool is_above = address >= segment->address;

        if (is_above && address - segment->address < segment->size) {
            return segment;
        }
        node = node->child[is_above];
    }
    return NULL;
}

/* Place of an address that is in a segment: a multiple of 512, as it is. */
static inline uint64_t tn_segment_map_place(const struct tn_segment_map *map, uint64_t address)
{
    const struct tn_segment *segment = tn_segment_map_find(map, address);

    return tn_always(segment) ? segment->place + (address - segment->address) : address;
}

/* Checks the order by age; adds violations to `findings`. */
void tn_segment_map_check(const struct tn_segment_map *map, struct tarn_findings *findings);

#endif
