/* SPDX-License-Identifier: MIT */
/*
 * The young blocks of a free set: those that were filed last. Most of what is filed leaves again
 * soon, when it is merged with a neighbour or serves the next request, so it does not go into the
 * bins before TN_YOUNG others were filed after it.
 *
 * A young block is its size at one of few places; the node says which. A search compares all sizes
 * at once. They are kept as keys: units of 512 bytes, plus the bits of the smallest normal float.
 * As floats keys have the same order as sizes, and SSE2 has a minimum of floats, but none of 32-bit
 * integers. Blocks of about 504 GiB and more are never young.
 *
 * Where blocks leave at random, few of them young, that only costs. So a set looks, every
 * TN_YOUNG_TRIES blocks that grew old, whether as many left young; if not, it makes no block young
 * for a while, and for longer the next time.
 *
 * All zero but `holes` is empty. Cost: O(TN_YOUNG) compares, no host memory.
 */
#ifndef TN_ALLOC_FAST_YOUNG_H
#define TN_ALLOC_FAST_YOUNG_H

#include "alloc/engine/size_class.h"
#include "alloc/fast/rest.h"
#include "alloc/pool/core.h"
#include "base/assertion.h"
#include "base/bits.h"

#include <stddef.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TN_YOUNG = 32,
    TN_YOUNG_TRIES = 256
};

enum {
    TN_YOUNG_KEY_BASE = 0x00800000, /* the smallest normal float */
    TN_YOUNG_KEY_END = 0x3f800000,  /* above all keys; with the bit below they are finite floats */
    TN_YOUNG_KEY_NONE = 0x40000000
};

#define TN_YOUNG_ALL ((uint32_t)(((uint64_t)1 << TN_YOUNG) - 1))

struct tn_young {
    _Alignas(16) int32_t keys[TN_YOUNG]; /* 0: a hole */
    struct tn_block *blocks[TN_YOUNG];
    uint32_t holes; /* bit i: place i is one; while the set rests there are none, and no blocks */
    uint32_t next;  /* place that is given up next */
    uint32_t old;   /* blocks that grew old, and that left young, since it was looked */
    uint32_t left;  /* ... */
    struct tn_rest rest; /* of blocks that are filed and do not become young */
};

static inline bool tn_young_can_be(uint64_t size)
{
    return size / TN_MIN_BLOCK_SIZE < TN_YOUNG_KEY_END - TN_YOUNG_KEY_BASE;
}

static inline int32_t tn_young_key(uint64_t size)
{
    return (int32_t)(size / TN_MIN_BLOCK_SIZE) + TN_YOUNG_KEY_BASE;
}

static inline bool tn_block_is_young(const struct tn_block *block)
{
    return block->filed - 1U < TN_YOUNG;
}

/* There is a hole. */
static inline void tn_young_insert(struct tn_young *young, struct tn_block *block)
{
    const unsigned place = tn_lowest_bit(young->holes);

    tn_assert(young->holes != 0 && tn_young_can_be(block->size));
    young->holes &= young->holes - 1;
    young->keys[place] = tn_young_key(block->size);
    young->blocks[place] = block;
    block->filed = (uint8_t)(place + 1);
}

/* The block is young. */
static inline void tn_young_remove(struct tn_young *young, struct tn_block *block)
{
    const unsigned place = block->filed - 1U;

    tn_assert(place < TN_YOUNG && young->blocks[place] == block);
    block->filed = TN_FILED_OLD;
    young->keys[place] = 0;
    young->holes |= 1U << place;
    young->left++;
}

/* Who leaves when there is no hole: places take turns. */
static inline struct tn_block *tn_young_next(const struct tn_young *young)
{
    return young->blocks[young->next % TN_YOUNG];
}

static inline bool tn_young_has(const struct tn_young *young, const struct tn_block *block)
{
    const unsigned place = block->filed - 1U;

    return place < TN_YOUNG && young->blocks[place] == block &&
           young->keys[place] == tn_young_key(block->size);
}

/* Young blocks; UINT64_MAX when the holes are not those places without a key: for checkers. */
static inline uint64_t tn_young_count(const struct tn_young *young)
{
    uint64_t count = 0;
    uint32_t empty = 0;

    for (unsigned i = 0; i < TN_YOUNG; i++) {
        count += young->keys[i] != 0;
        empty |= (uint32_t)(young->keys[i] == 0) << i;
    }
    return young->holes == (young->rest.left > 0 && count == 0 ? 0 : empty) ? count : UINT64_MAX;
}

/* tn_young_equal: bit i is set where place i has that key. tn_young_least: the least key at or
 * above one, TN_YOUNG_KEY_NONE or more if there is none. */
#if defined(__SSE2__)
static inline __m128i tn_young_quad(const struct tn_young *young, size_t i)
{
    return _mm_load_si128((const __m128i *)(const void *)&young->keys[4 * i]);
}

static inline uint32_t tn_young_equal(const struct tn_young *young, int32_t key)
{
    const __m128i wanted = _mm_set1_epi32(key);
    uint32_t equal = 0;

    for (size_t i = 0; i < TN_YOUNG / 4; i += 4) {
        const __m128i low = _mm_packs_epi32(_mm_cmpeq_epi32(tn_young_quad(young, i), wanted),
                                            _mm_cmpeq_epi32(tn_young_quad(young, i + 1), wanted));
        const __m128i high = _mm_packs_epi32(_mm_cmpeq_epi32(tn_young_quad(young, i + 2), wanted),
                                             _mm_cmpeq_epi32(tn_young_quad(young, i + 3), wanted));

        equal |= (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << 4 * i;
    }
    return equal;
}

/* Four keys as floats; those below `wanted` are TN_YOUNG_KEY_NONE or more. */
static inline __m128 tn_young_quad_from(const struct tn_young *young, size_t i, __m128i wanted)
{
    const __m128i none = _mm_set1_epi32(TN_YOUNG_KEY_NONE);
    const __m128i keys = tn_young_quad(young, i);
    const __m128i is_below = _mm_cmplt_epi32(keys, wanted);

    return _mm_castsi128_ps(_mm_or_si128(keys, _mm_and_si128(is_below, none)));
}

static inline int32_t tn_young_least(const struct tn_young *young, int32_t key)
{
    const __m128i wanted = _mm_set1_epi32(key);
    __m128 least = tn_young_quad_from(young, 0, wanted);
    __m128 other = tn_young_quad_from(young, 1, wanted);

    for (size_t i = 2; i < TN_YOUNG / 4; i += 2) { /* two chains, one does not wait for the other */
        least = _mm_min_ps(least, tn_young_quad_from(young, i, wanted));
        other = _mm_min_ps(other, tn_young_quad_from(young, i + 1, wanted));
    }
    least = _mm_min_ps(least, other);
    least = _mm_min_ps(least, _mm_movehl_ps(least, least));
    least = _mm_min_ps(least, _mm_shuffle_ps(least, least, _MM_SHUFFLE(1, 1, 1, 1)));
    return _mm_cvtsi128_si32(_mm_castps_si128(least));
}
static_assert(TN_YOUNG % 16 == 0 && TN_YOUNG <= 32, "four quads of keys at once");
#else
static inline uint32_t tn_young_equal(const struct tn_young *young, int32_t key)
{
    uint32_t equal = 0;

    for (unsigned i = 0; i < TN_YOUNG; i++) {
        equal |= (uint32_t)(young->keys[i] == key) << i;
    }
    return equal;
}

static inline int32_t tn_young_least(const struct tn_young *young, int32_t key)
{
    int32_t least = TN_YOUNG_KEY_NONE;

    for (unsigned i = 0; i < TN_YOUNG; i++) {
        least = young->keys[i] >= key && young->keys[i] < least ? young->keys[i] : least;
    }
    return least;
}
#endif

/* Of some places the block with the lowest address at or above one; NULL if there is none. */
static inline struct tn_block *tn_young_lowest(const struct tn_young *young, uint32_t places,
                                               uint64_t address)
{
    struct tn_block *lowest = NULL;

    for (; places != 0; places &= places - 1) {
        struct tn_block *block = young->blocks[tn_lowest_bit(places)];

        if (block->address >= address && (!lowest || block->address < lowest->address)) {
            lowest = block;
        }
    }
    return lowest;
}

/* Best fit: the first block of at least `size` bytes (> 0), NULL if there is none. */
static inline struct tn_block *tn_young_find(const struct tn_young *young, uint64_t size)
{
    if (tn_unlikely(young->rest.left > 0 || !tn_young_can_be(size))) {
        return NULL;
    }
    const int32_t least = tn_young_least(young, tn_young_key(size));

    return least < TN_YOUNG_KEY_NONE ? tn_young_lowest(young, tn_young_equal(young, least), 0)
                                     : NULL;
}

/* First block at or after (size, address), size > 0; NULL if there is none. */
static inline struct tn_block *tn_young_from(const struct tn_young *young, uint64_t size,
                                             uint64_t address)
{
    struct tn_block *block =
        tn_young_can_be(size)
            ? tn_young_lowest(young, tn_young_equal(young, tn_young_key(size)), address)
            : NULL;

    return block ? block : tn_young_find(young, size + TN_MIN_BLOCK_SIZE);
}

/* Last block before (size, address), NULL if there is none. Rare paths only. */
static inline struct tn_block *tn_young_before(const struct tn_young *young, uint64_t size,
                                               uint64_t address)
{
    struct tn_block *last = NULL;

    for (unsigned i = 0; i < TN_YOUNG; i++) {
        struct tn_block *block = young->keys[i] != 0 ? young->blocks[i] : NULL;

        if (block && tn_block_is_below(block, size, address) &&
            (!last || tn_block_is_below(last, block->size, block->address))) {
            last = block;
        }
    }
    return last;
}

#endif
