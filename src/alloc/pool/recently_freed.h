/* SPDX-License-Identifier: MIT */
/*
 * The recently freed blocks of a free set: those that were inserted last. Most of what is inserted
 * leaves again soon, when it is coalesced with a neighbour or serves the next request, so it does
 * not go into the bins before TN_RECENT others were inserted after it.
 *
 * A recently freed block is its size in one of few slots; the node says which. A search compares
 * all sizes at once. They are kept as keys: units of 512 bytes, plus the bits of the smallest
 * normal float. As floats keys have the same order as sizes, and SSE2 has a minimum of floats, but
 * none of 32-bit integers. Blocks of about 504 GiB and more are never kept here.
 *
 * Where blocks leave at random, few of them from here, that only costs. So a set looks, every
 * TN_RECENT_TRIES evictions, whether as many left from here; if not, it backs off: blocks go to
 * their bins for a while, and for longer the next time.
 *
 * Only for speed, and left out of a build without the fast path: then nothing is kept here. All
 * zero but `holes` is empty. Cost: O(TN_RECENT) compares, no host memory.
 */
#ifndef TN_ALLOC_POOL_RECENTLY_FREED_H
#define TN_ALLOC_POOL_RECENTLY_FREED_H

#include "alloc/config/fast_path.h"
#include "alloc/config/size_class.h"
#include "alloc/pool/backoff.h"
#include "alloc/pool/core.h"
#include "base/assertion.h"
#include "base/bits.h"

#include <stddef.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TN_RECENT = 32,
    TN_RECENT_TRIES = 256
};

enum {
    TN_RECENT_KEY_BASE = 0x00800000, /* the smallest normal float */
    TN_RECENT_KEY_END = 0x3f800000,  /* above all keys; with the bit below they are finite floats */
    TN_RECENT_KEY_NONE = 0x40000000
};

#define TN_RECENT_ALL ((uint32_t)(((uint64_t)1 << TN_RECENT) - 1))

struct tn_recently_freed {
    _Alignas(16) int32_t keys[TN_RECENT]; /* 0: a hole */
    struct tn_block *blocks[TN_RECENT];
    uint32_t
        holes;     /* bit i: slot i is one; while the set backs off there are none, and no blocks */
    uint32_t next; /* slot that is evicted next */
    uint32_t
        evicted; /* blocks that went to their bins, and that left from here, since the last look */
    uint32_t reused;           /* ... */
    struct tn_backoff backoff; /* counts blocks that go to their bins at once */
};

static inline bool tn_recent_can_be(uint64_t size)
{
    return TN_FAST_HAS(TN_PART_RECENTLY_FREED) &&
           size / TN_MIN_BLOCK_SIZE < TN_RECENT_KEY_END - TN_RECENT_KEY_BASE;
}

static inline int32_t tn_recent_key(uint64_t size)
{
    return (int32_t)(size / TN_MIN_BLOCK_SIZE) + TN_RECENT_KEY_BASE;
}

static inline bool tn_block_is_recent(const struct tn_block *block)
{
    return TN_FAST_HAS(TN_PART_RECENTLY_FREED) && block->slot - 1U < TN_RECENT;
}

/* There is a hole. */
static inline void tn_recent_insert(struct tn_recently_freed *recent, struct tn_block *block)
{
    const unsigned slot = tn_lowest_bit(recent->holes);

    tn_assert(recent->holes != 0 && tn_recent_can_be(block->size));
    recent->holes &= recent->holes - 1;
    recent->keys[slot] = tn_recent_key(block->size);
    recent->blocks[slot] = block;
    block->slot = (uint8_t)(slot + 1);
}

/* The block is here. */
static inline void tn_recent_remove(struct tn_recently_freed *recent, struct tn_block *block)
{
    const unsigned slot = block->slot - 1U;

    tn_assert(slot < TN_RECENT && recent->blocks[slot] == block);
    block->slot = TN_SLOT_BIN;
    recent->keys[slot] = 0;
    recent->holes |= 1U << slot;
    recent->reused++;
}

/* Who leaves when there is no hole: slots take turns. */
static inline struct tn_block *tn_recent_next_evicted(const struct tn_recently_freed *recent)
{
    return recent->blocks[recent->next % TN_RECENT];
}

static inline bool tn_recent_has(const struct tn_recently_freed *recent,
                                 const struct tn_block *block)
{
    const unsigned slot = block->slot - 1U;

    return slot < TN_RECENT && recent->blocks[slot] == block &&
           recent->keys[slot] == tn_recent_key(block->size);
}

/* Blocks here; UINT64_MAX when the holes are not those slots without a key: for checkers. */
static inline uint64_t tn_recent_count(const struct tn_recently_freed *recent)
{
    uint64_t count = 0;
    uint32_t empty = 0;

    for (unsigned i = 0; i < TN_RECENT; i++) {
        count += recent->keys[i] != 0;
        empty |= (uint32_t)(recent->keys[i] == 0) << i;
    }
    return recent->holes == (recent->backoff.left > 0 && count == 0 ? 0 : empty) ? count
                                                                                 : UINT64_MAX;
}

/* tn_recent_equal: bit i is set where slot i has that key. tn_recent_least: the least key at or
 * above one, TN_RECENT_KEY_NONE or more if there is none. */
#if defined(__SSE2__)
static inline __m128i tn_recent_quad(const struct tn_recently_freed *recent, size_t i)
{
    return _mm_load_si128((const __m128i *)(const void *)&recent->keys[4 * i]);
}

static inline uint32_t tn_recent_equal(const struct tn_recently_freed *recent, int32_t key)
{
    const __m128i wanted = _mm_set1_epi32(key);
    uint32_t equal = 0;

    for (size_t i = 0; i < TN_RECENT / 4; i += 4) {
        const __m128i low = _mm_packs_epi32(_mm_cmpeq_epi32(tn_recent_quad(recent, i), wanted),
                                            _mm_cmpeq_epi32(tn_recent_quad(recent, i + 1), wanted));
        const __m128i high =
            _mm_packs_epi32(_mm_cmpeq_epi32(tn_recent_quad(recent, i + 2), wanted),
                            _mm_cmpeq_epi32(tn_recent_quad(recent, i + 3), wanted));

        equal |= (uint32_t)_mm_movemask_epi8(_mm_packs_epi16(low, high)) << 4 * i;
    }
    return equal;
}

/* Four keys as floats; those below `wanted` are TN_RECENT_KEY_NONE or more. */
static inline __m128 tn_recent_quad_from(const struct tn_recently_freed *recent, size_t i,
                                         __m128i wanted)
{
    const __m128i none = _mm_set1_epi32(TN_RECENT_KEY_NONE);
    const __m128i keys = tn_recent_quad(recent, i);
    const __m128i is_below = _mm_cmplt_epi32(keys, wanted);

    return _mm_castsi128_ps(_mm_or_si128(keys, _mm_and_si128(is_below, none)));
}

static inline int32_t tn_recent_least(const struct tn_recently_freed *recent, int32_t key)
{
    const __m128i wanted = _mm_set1_epi32(key);
    __m128 least = tn_recent_quad_from(recent, 0, wanted);
    __m128 other = tn_recent_quad_from(recent, 1, wanted);

    for (size_t i = 2; i < TN_RECENT / 4;
         i += 2) { /* two chains, one does not wait for the other */
        least = _mm_min_ps(least, tn_recent_quad_from(recent, i, wanted));
        other = _mm_min_ps(other, tn_recent_quad_from(recent, i + 1, wanted));
    }
    least = _mm_min_ps(least, other);
    least = _mm_min_ps(least, _mm_movehl_ps(least, least));
    least = _mm_min_ps(least, _mm_shuffle_ps(least, least, _MM_SHUFFLE(1, 1, 1, 1)));
    return _mm_cvtsi128_si32(_mm_castps_si128(least));
}
static_assert(TN_RECENT % 16 == 0 && TN_RECENT <= 32, "four quads of keys at once");
#else
static inline uint32_t tn_recent_equal(const struct tn_recently_freed *recent, int32_t key)
{
    uint32_t equal = 0;

    for (unsigned i = 0; i < TN_RECENT; i++) {
        equal |= (uint32_t)(recent->keys[i] == key) << i;
    }
    return equal;
}

static inline int32_t tn_recent_least(const struct tn_recently_freed *recent, int32_t key)
{
    int32_t least = TN_RECENT_KEY_NONE;

    for (unsigned i = 0; i < TN_RECENT; i++) {
        least = recent->keys[i] >= key && recent->keys[i] < least ? recent->keys[i] : least;
    }
    return least;
}
#endif

/* Of some slots the block with the lowest address at or above one; NULL if there is none. */
static inline struct tn_block *tn_recent_lowest(const struct tn_recently_freed *recent,
                                                uint32_t slots, uint64_t address)
{
    struct tn_block *lowest = NULL;

    for (; slots != 0; slots &= slots - 1) {
        struct tn_block *block = recent->blocks[tn_lowest_bit(slots)];

        if (block->address >= address && (!lowest || block->address < lowest->address)) {
            lowest = block;
        }
    }
    return lowest;
}

/* Best fit: the first block of at least `size` bytes (> 0), NULL if there is none. */
static inline struct tn_block *tn_recent_find(const struct tn_recently_freed *recent, uint64_t size)
{
    if (tn_unlikely(recent->backoff.left > 0 || !tn_recent_can_be(size))) {
        return NULL;
    }
    const int32_t least = tn_recent_least(recent, tn_recent_key(size));

    return least < TN_RECENT_KEY_NONE ? tn_recent_lowest(recent, tn_recent_equal(recent, least), 0)
                                      : NULL;
}

/* First block at or after (size, address), size > 0; NULL if there is none. */
static inline struct tn_block *tn_recent_from(const struct tn_recently_freed *recent, uint64_t size,
                                              uint64_t address)
{
    struct tn_block *block =
        tn_recent_can_be(size)
            ? tn_recent_lowest(recent, tn_recent_equal(recent, tn_recent_key(size)), address)
            : NULL;

    return block ? block : tn_recent_find(recent, size + TN_MIN_BLOCK_SIZE);
}

/* Last block before (size, address), NULL if there is none. Rare paths only. */
static inline struct tn_block *tn_recent_before(const struct tn_recently_freed *recent,
                                                uint64_t size, uint64_t address)
{
    struct tn_block *last = NULL;

    for (unsigned i = 0; i < TN_RECENT; i++) {
        struct tn_block *block = recent->keys[i] != 0 ? recent->blocks[i] : NULL;

        if (block && tn_block_is_below(block, size, address) &&
            (!last || tn_block_is_below(last, block->size, block->address))) {
            last = block;
        }
    }
    return last;
}

#endif
