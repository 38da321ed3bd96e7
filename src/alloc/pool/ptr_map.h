/* SPDX-License-Identifier: MIT */
/*
 * Device address to block, for the blocks that are allocated: exact addresses only.
 *
 * A hash table of buckets, each one cache line of eight entries. An entry is the block's node and,
 * in the bits that addresses of this process do not have, 16 more bits of the hash; the address
 * itself is in the node. So a lookup reads one line of the table and the node, which is needed
 * anyway, and compares eight entries without a branch. What does not fit into its bucket goes into
 * the next that has room; a removal pulls such entries back, so that a search may end at the first
 * bucket that is not full. At most three of eight entries are used: one bucket in eighty is full
 * then. If half were, a removal in nine would meet a full bucket, which no processor can predict.
 *
 * Inserting may need host memory, which tn_ptr_map_reserve gets beforehand; removing never fails.
 * Guarded by the heap's lock. Cost: O(1) expected, 21 to 43 bytes per block while blocks only
 * become more, up to 512 where most are gone.
 */
#ifndef TN_ALLOC_POOL_PTR_MAP_H
#define TN_ALLOC_POOL_PTR_MAP_H

#include "alloc/pool/core.h"
#include "base/assertion.h"
#include "base/attr.h"
#include "base/bits.h"

#include <stddef.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TN_BUCKET = 8,
    TN_BUCKET_FILL = 3, /* entries that are used of each at most, on average */
    TN_TAG_SHIFT = 48   /* user addresses are below 2^47 unless a program asks for more */
};

/* All zero is an empty map. */
struct tn_ptr_map {
    uint64_t *entries; /* TN_BUCKET for each bucket; 0 = unused */
    uint64_t buckets;  /* a power of two, or 0 */
    uint64_t count;
    unsigned shift;  /* 64 - log2(buckets) */
    bool keeps_room; /* removing does not shrink it: room was reserved for what is inserted then */
};

void tn_ptr_map_fini(struct tn_ptr_map *map);

bool tn_ptr_map_grow(struct tn_ptr_map *map, uint64_t more) TN_MUST_CHECK;
uint64_t *tn_ptr_map_slot_beyond(const struct tn_ptr_map *map, uint64_t bucket, uint64_t address);
void tn_ptr_map_insert_beyond(struct tn_ptr_map *map, uint64_t bucket, uint64_t entry);
void tn_ptr_map_removed(struct tn_ptr_map *map, uint64_t *slot, bool was_full);

/* Host bytes held. */
size_t tn_ptr_map_memory(const struct tn_ptr_map *map);

/* Multiplicative hashing: the high bits of the product are well mixed. */
static inline uint64_t tn_ptr_hash(uint64_t address)
{
    return address * 0x9e3779b97f4a7c15u;
}

static inline uint64_t tn_ptr_tag(uint64_t hash)
{
    return hash << 24 >> TN_TAG_SHIFT;
}

static inline struct tn_block *tn_ptr_entry_block(uint64_t entry)
{
    return (struct tn_block *)(uintptr_t)(entry & (((uint64_t)1 << TN_TAG_SHIFT) - 1));
}

static inline uint64_t tn_ptr_bucket(const struct tn_ptr_map *map, uint64_t hash)
{
    tn_assert(map->shift < 64);
    return hash >> map->shift;
}

/* tn_bucket_holes: bit i is set where entry i of the bucket is unused. tn_bucket_matches: where
 * it has the tag. Nodes are never at a multiple of 4 GiB, so half of an entry says whether it is
 * used. */
#if defined(__SSE2__)
static inline __m128i tn_bucket_quad(const uint64_t *entries, bool high)
{
    const __m128 two = _mm_castsi128_ps(_mm_load_si128((const __m128i *)(const void *)entries));
    const __m128 more =
        _mm_castsi128_ps(_mm_load_si128((const __m128i *)(const void *)(entries + 2)));

    return _mm_castps_si128(high ? _mm_shuffle_ps(two, more, _MM_SHUFFLE(3, 1, 3, 1))
                                 : _mm_shuffle_ps(two, more, _MM_SHUFFLE(2, 0, 2, 0)));
}

static inline unsigned tn_bucket_mask(__m128i first, __m128i second)
{
    const __m128i both = _mm_packs_epi32(first, second);

    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(both, _mm_setzero_si128()));
}

static inline unsigned tn_bucket_holes(const uint64_t *bucket)
{
    const __m128i zero = _mm_setzero_si128();

    return tn_bucket_mask(_mm_cmpeq_epi32(tn_bucket_quad(bucket, false), zero),
                          _mm_cmpeq_epi32(tn_bucket_quad(bucket + 4, false), zero));
}

static inline unsigned tn_bucket_matches(const uint64_t *bucket, uint64_t tag)
{
    const __m128i wanted = _mm_set1_epi32((int)tag);
    const __m128i first = _mm_srli_epi32(tn_bucket_quad(bucket, true), TN_TAG_SHIFT - 32);
    const __m128i second = _mm_srli_epi32(tn_bucket_quad(bucket + 4, true), TN_TAG_SHIFT - 32);

    return tn_bucket_mask(_mm_cmpeq_epi32(first, wanted), _mm_cmpeq_epi32(second, wanted));
}
#else
static inline unsigned tn_bucket_holes(const uint64_t *bucket)
{
    unsigned holes = 0;

    for (unsigned i = 0; i < TN_BUCKET; i++) {
        holes |= (unsigned)((uint32_t)bucket[i] == 0) << i;
    }
    return holes;
}

static inline unsigned tn_bucket_matches(const uint64_t *bucket, uint64_t tag)
{
    unsigned matches = 0;

    for (unsigned i = 0; i < TN_BUCKET; i++) {
        matches |= (unsigned)(bucket[i] >> TN_TAG_SHIFT == tag) << i;
    }
    return matches;
}
#endif

/* The entry of that address in one bucket, or NULL. */
static inline uint64_t *tn_bucket_find(uint64_t *bucket, uint64_t tag, uint64_t address)
{
    unsigned matches = tn_bucket_matches(bucket, tag);

    while (matches != 0) {
        uint64_t *slot = &bucket[tn_lowest_bit(matches)];

        if (tn_likely(*slot != 0 && tn_ptr_entry_block(*slot)->address == address)) {
            return slot;
        }
        matches &= matches - 1;
    }
    return NULL;
}

/* How many entries so many buckets may have. */
static inline uint64_t tn_ptr_map_room(uint64_t buckets)
{
    return buckets * TN_BUCKET_FILL;
}

/* Makes room for `more` insertions; false when host memory is missing. */
static inline bool tn_ptr_map_reserve(struct tn_ptr_map *map, uint64_t more)
{
    return tn_likely(more <= tn_ptr_map_room(map->buckets) - map->count) ||
           tn_ptr_map_grow(map, more);
}

/* Place of the block at that address, borrowed until the map changes; NULL when it is not here. */
static inline uint64_t *tn_ptr_map_slot(const struct tn_ptr_map *map, uint64_t address)
{
    const uint64_t hash = tn_ptr_hash(address);
    const uint64_t bucket = tn_ptr_bucket(map, hash);

    if (tn_unlikely(map->count == 0)) {
        return NULL;
    }
    uint64_t *slot = tn_bucket_find(&map->entries[bucket * TN_BUCKET], tn_ptr_tag(hash), address);

    return tn_likely(slot != NULL) ? slot : tn_ptr_map_slot_beyond(map, bucket, address);
}

static inline struct tn_block *tn_ptr_map_find(const struct tn_ptr_map *map, uint64_t address)
{
    const uint64_t *slot = tn_ptr_map_slot(map, address);

    return slot ? tn_ptr_entry_block(*slot) : NULL;
}

/* Room must have been reserved; the address is not in the map. */
static TN_INLINE void tn_ptr_map_insert(struct tn_ptr_map *map, struct tn_block *block)
{
    const uint64_t hash = tn_ptr_hash(block->address);
    const uint64_t bucket = tn_ptr_bucket(map, hash);
    const uint64_t entry = tn_ptr_tag(hash) << TN_TAG_SHIFT | (uint64_t)(uintptr_t)block;
    uint64_t *entries = &map->entries[bucket * TN_BUCKET];
    const unsigned holes = tn_bucket_holes(entries);

    map->count++;
    if (tn_unlikely(holes == 0)) {
        tn_ptr_map_insert_beyond(map, bucket, entry);
        return;
    }
    entries[tn_lowest_bit(holes)] = entry;
}

/* Removes what tn_ptr_map_slot just found. */
static TN_INLINE void tn_ptr_map_remove(struct tn_ptr_map *map, uint64_t *slot)
{
    if (tn_never(!slot)) {
        return;
    }
    const uintptr_t line = (uintptr_t)slot & ~(uintptr_t)(TN_CACHE_LINE - 1);
    const bool was_full = tn_bucket_holes((const uint64_t *)line) == 0;

    *slot = 0;
    map->count--;
    if (tn_unlikely(was_full || map->count * 8 < map->buckets)) {
        tn_ptr_map_removed(map, slot, was_full);
    }
}

/* Removes a block that is in the map. */
static inline void tn_ptr_map_take(struct tn_ptr_map *map, uint64_t address)
{
    tn_ptr_map_remove(map, tn_ptr_map_slot(map, address));
}

#endif
