/* SPDX-License-Identifier: MIT */
/*
 * The free blocks of one size class. The least in (size, place) order is in the bin itself, because
 * that is the one an allocation takes; most bins have no other. The others are in leaves, not
 * sorted. The place of a block is its address, or its place by age (segment_map.h): the set says
 * which.
 *
 * A block there is a key in a leaf of at most 64 slots, and the node knows its slot: inserting
 * fills a hole, removing leaves one, neither searches nor moves anything. When the least block
 * leaves the bin, the keys of a leaf are compared, and the least of them takes its place. A key is
 * the size within its class, the place and the slot in one number, with the bit pattern of a
 * positive double: doubles are ordered as their patterns are, and SSE2 has a minimum of doubles,
 * but none of 64-bit integers.
 *
 * More than 64 such blocks take several leaves, listed in a directory. Leaves are ordered: every
 * key of one is below all keys of the next, so that any ordered search reads one or two leaves.
 *
 * Keys hold blocks of less than TN_BIN_SIZE_END bytes at places below TN_BIN_PLACE_END; the free
 * set keeps the few others apart.
 *
 * Owns: its leaves, not the blocks. Cost: insert and remove O(1), and O(64) compares, two at once,
 * when the least leaves; in a directory of n leaves O(log n) more.
 */
#ifndef TN_ALLOC_POOL_BIN_H
#define TN_ALLOC_POOL_BIN_H

#include "alloc/config/size_class.h"
#include "alloc/pool/core.h"
#include "alloc/pool/leaf_store.h"
#include "base/assertion.h"
#include "base/attr.h"
#include "base/bits.h"

#include <stddef.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TN_LEAF_SLOTS = 64,
    TN_LEAF_FEW = 8,     /* slots of a bin's first leaf, before it grows */
    TN_CLASSES_LOG2 = 6, /* classes of each power of two: a class is the first 7 bits of a size */
    TN_BIN_KEY_SLOT_BITS = 6,
    TN_BIN_KEY_PLACE_BITS = 39,
    TN_BIN_KEY_SIZE_BITS = 17
};

/* Above all keys; the key of a hole. */
#define TN_BIN_KEY_NONE ((uint64_t)0x7fe0000000000000)
#define TN_BIN_KEY_BASE ((uint64_t)1 << 52) /* the smallest normal double: none is flushed to 0 */
#define TN_BIN_SIZE_END                                                                            \
    ((uint64_t)TN_MIN_BLOCK_SIZE << (TN_BIN_KEY_SIZE_BITS + TN_CLASSES_LOG2 + 1))
#define TN_BIN_PLACE_END ((uint64_t)TN_MIN_BLOCK_SIZE << TN_BIN_KEY_PLACE_BITS)

/* All zero: no slots. */
struct tn_leaf {
    uint64_t holes;    /* bit i: slot i is a hole */
    uint64_t slots;    /* bit i: slot i exists */
    uint64_t *keys;    /* `capacity` keys, then as many blocks */
    uint64_t capacity; /* 0, or a power of two from TN_LEAF_FEW to TN_LEAF_SLOTS */
};

struct tn_directory;
struct tn_segment_map;

/* One cache line. All zero is an empty bin. */
struct tn_bin {
    _Alignas(TN_CACHE_LINE) uint64_t least; /* key of `first`, if there is one */
    struct tn_block *first;         /* the least block, in no leaf; NULL: the bin is empty */
    struct tn_leaf leaf;            /* the only leaf, */
    struct tn_directory *directory; /* or else all leaves, at least two */
};

static_assert(sizeof(struct tn_bin) == TN_CACHE_LINE, "a bin is one cache line");

/* Frees the leaves; the bin is empty afterwards. A bin's first leaf comes from `store`, always the
 * same one. */
void tn_bin_fini(struct tn_bin *bin, struct tn_leaf_store *store);

/* Makes room if there is no hole; false when host memory is missing, and the bin is unchanged. */
bool tn_bin_insert_slow(struct tn_bin *bin, struct tn_leaf_store *store, struct tn_block *block,
                        uint64_t place) TN_MUST_CHECK;

/* From a bin with a directory, which does not become empty. */
void tn_bin_remove_slow(struct tn_bin *bin, const struct tn_block *block, uint64_t place);

/* Makes the keys again after all segments got new places, which are in the same order. The bin is
 * not empty. */
void tn_bin_rekey(struct tn_bin *bin, const struct tn_segment_map *map);

/* Smallest block at or after (size, place), or NULL. The size is of the bin's class. */
struct tn_block *tn_bin_find_from(const struct tn_bin *bin, uint64_t size, uint64_t place);

/* Largest block before (size, place), or NULL. */
struct tn_block *tn_bin_find_before(const struct tn_bin *bin, uint64_t size, uint64_t place);

/* Largest block; the bin is not empty. */
struct tn_block *tn_bin_max(const struct tn_bin *bin);

/* Whether the block is in the slot it names: for checkers. */
bool tn_bin_has(const struct tn_bin *bin, const struct tn_block *block, uint64_t place);

/* Number of blocks: for checkers. */
uint64_t tn_bin_count(const struct tn_bin *bin);

/* Host bytes held, those in the store excepted. */
size_t tn_bin_memory(const struct tn_bin *bin);

static inline bool tn_bin_can_hold(uint64_t size, uint64_t place)
{
    return (size / TN_BIN_SIZE_END | place / TN_BIN_PLACE_END) == 0; /* one branch, not two */
}

/* The low bits of a size in which the sizes of its class differ. */
static inline unsigned tn_bin_dropped_bits(uint64_t units)
{
    tn_assert(units < (uint64_t)1 << 55);
    return tn_log2_floor(units | 1U << TN_CLASSES_LOG2) - TN_CLASSES_LOG2;
}

/* The key for slot 0. Only keys of one class can be compared. */
static inline uint64_t tn_bin_key(uint64_t size, uint64_t place)
{
    tn_assert(tn_bin_can_hold(size, place));
    const uint64_t units = size / TN_MIN_BLOCK_SIZE;
    const uint64_t within = units & (((uint64_t)1 << tn_bin_dropped_bits(units)) - 1);
    const uint64_t at = place / TN_MIN_BLOCK_SIZE;

    return TN_BIN_KEY_BASE + ((within << TN_BIN_KEY_PLACE_BITS | at) << TN_BIN_KEY_SLOT_BITS);
}

static inline unsigned tn_bin_key_slot(uint64_t key)
{
    return (unsigned)(key % TN_LEAF_SLOTS);
}

static inline struct tn_block **tn_leaf_blocks(const struct tn_leaf *leaf)
{
    return (struct tn_block **)(void *)(leaf->keys + leaf->capacity);
}

/* The least key, TN_BIN_KEY_NONE if there is none. The leaf has slots. */
#if defined(__SSE2__)
static inline __m128d tn_leaf_pair(const struct tn_leaf *leaf, uint64_t i)
{
    return _mm_castsi128_pd(_mm_load_si128((const __m128i *)(const void *)&leaf->keys[i]));
}

static inline uint64_t tn_leaf_pair_least(__m128d pair)
{
    const __m128d least = _mm_min_sd(pair, _mm_unpackhi_pd(pair, pair));

    return (uint64_t)_mm_cvtsi128_si64(_mm_castpd_si128(least));
}

static inline uint64_t tn_leaf_least(const struct tn_leaf *leaf)
{
    __m128d least = _mm_min_pd(tn_leaf_pair(leaf, 0), tn_leaf_pair(leaf, 2));
    __m128d other = _mm_min_pd(tn_leaf_pair(leaf, 4), tn_leaf_pair(leaf, 6));

    for (uint64_t i = 8; tn_unlikely(i < leaf->capacity); i += 4) {
        least = _mm_min_pd(least, tn_leaf_pair(leaf, i));
        other = _mm_min_pd(other, tn_leaf_pair(leaf, i + 2));
    }
    return tn_leaf_pair_least(_mm_min_pd(least, other));
}
#else
static inline uint64_t tn_leaf_least(const struct tn_leaf *leaf)
{
    uint64_t least = TN_BIN_KEY_NONE;

    for (uint64_t i = 0; i < leaf->capacity; i++) {
        least = leaf->keys[i] < least ? leaf->keys[i] : least;
    }
    return least;
}
#endif

/* There is a hole. `key` is that of slot 0. */
static inline void tn_leaf_insert(struct tn_leaf *leaf, uint64_t key, struct tn_block *block)
{
    const unsigned slot = tn_lowest_bit(leaf->holes);

    leaf->holes &= leaf->holes - 1;
    leaf->keys[slot] = key + slot;
    tn_leaf_blocks(leaf)[slot] = block;
    block->slot = (uint8_t)slot;
}

static inline void tn_leaf_remove(struct tn_leaf *leaf, unsigned slot)
{
    tn_assert(slot < TN_LEAF_SLOTS);
    leaf->keys[slot] = TN_BIN_KEY_NONE;
    leaf->holes |= (uint64_t)1 << slot;
}

static inline bool tn_leaf_is_empty(const struct tn_leaf *leaf)
{
    return leaf->holes == leaf->slots;
}

/* Whether tn_bin_fini has something to free. The bin is empty, so it has no directory. */
static inline bool tn_bin_has_leaf(const struct tn_bin *bin)
{
    tn_assert(!bin->directory);
    return bin->leaf.capacity > 0;
}

/* Into an empty bin. */
static inline void tn_bin_insert_only(struct tn_bin *bin, struct tn_block *block, uint64_t place)
{
    bin->least = tn_bin_key(block->size, place);
    bin->first = block;
}

/* Makes the block the first if it is less; what then is not the first is returned with its key.
 * Without a branch, which could not be predicted. */
static inline struct tn_block *tn_bin_exchange(struct tn_bin *bin, struct tn_block *block,
                                               uint64_t *key_inout)
{
    const uint64_t is_less = -(uint64_t)(*key_inout < bin->least);
    const uint64_t keys = (bin->least ^ *key_inout) & is_less;
    const uintptr_t blocks = ((uintptr_t)bin->first ^ (uintptr_t)block) & is_less;

    bin->least ^= keys;
    *key_inout ^= keys;
    bin->first = (struct tn_block *)((uintptr_t)bin->first ^ blocks);
    return (struct tn_block *)((uintptr_t)block ^ blocks);
}

/* The bin is not empty, and its own leaf has a hole. `block` is not in the bin. */
static TN_INLINE void tn_bin_insert(struct tn_bin *bin, struct tn_block *block, uint64_t place)
{
    uint64_t key = tn_bin_key(block->size, place);
    struct tn_block *other = tn_bin_exchange(bin, block, &key);

    tn_leaf_insert(&bin->leaf, key, other);
}

/* The least block of the bin's only leaf becomes the first. */
static TN_INLINE void tn_bin_refill(struct tn_bin *bin)
{
    const uint64_t key = tn_leaf_least(&bin->leaf);
    const unsigned slot = tn_bin_key_slot(key);

    bin->least = key - slot;
    bin->first = tn_leaf_blocks(&bin->leaf)[slot];
    tn_leaf_remove(&bin->leaf, slot);
}

/* The bin is not empty and has no directory. Returns whether it has become empty. */
static TN_INLINE bool tn_bin_remove_first(struct tn_bin *bin)
{
    tn_assert(bin->first && !bin->directory);
    if (!tn_leaf_is_empty(&bin->leaf)) {
        tn_bin_refill(bin);
        return false;
    }
    bin->first = NULL;
    return true;
}

/* `block` is in the bin, which has no directory. Never fails. Returns whether the bin has become
 * empty. */
static TN_INLINE bool tn_bin_remove(struct tn_bin *bin, const struct tn_block *block)
{
    tn_assert(!bin->directory);
    if (block != bin->first) {
        tn_assert(block->slot < bin->leaf.capacity);
        tn_assert(tn_leaf_blocks(&bin->leaf)[block->slot] == block);
        tn_leaf_remove(&bin->leaf, block->slot);
        return false;
    }
    return tn_bin_remove_first(bin);
}

#endif
