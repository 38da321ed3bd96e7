/* SPDX-License-Identifier: MIT */
/*
 * The young blocks of a free set: those that were filed last. Most of what is filed leaves again
 * soon, when it is merged with a neighbour or serves the next request, so it does not go into the
 * bins before TN_YOUNG others were filed after it.
 *
 * A young block is a key, its size and address in one number, at one of few places; the node says
 * which. A search compares all keys, without a branch. Blocks whose size or address do not fit a
 * key are never young.
 *
 * Where blocks leave at random, few of them young, that only costs. So a set looks, every
 * TN_YOUNG_TRIES blocks that grew old, whether as many left young; if not, it makes no block young
 * for a while, and for longer the next time.
 *
 * All zero but `holes` is empty. Cost: O(TN_YOUNG) compares, no host memory.
 */
#ifndef TN_ALLOC_YOUNG_H
#define TN_ALLOC_YOUNG_H

#include "alloc/core.h"
#include "base/assertion.h"
#include "base/bits.h"

enum {
    TN_YOUNG = 8,
    TN_YOUNG_UNIT_BITS = 9,     /* sizes and addresses are multiples of 512 */
    TN_YOUNG_ADDRESS_BITS = 39, /* units: addresses below 2^48 */
    TN_YOUNG_SIZE_BITS = 24,    /* units: sizes below 8 GiB. The highest bit stays 0 */
    TN_YOUNG_TRIES = 256,
    TN_YOUNG_REST_MIN = 1024, /* blocks that are filed */
    TN_YOUNG_REST_MAX = 16384
};

#define TN_YOUNG_ALL    (((uint32_t)1 << TN_YOUNG) - 1)
#define TN_YOUNG_BEYOND ((uint64_t)1 << 63) /* above every key */

struct tn_young {
    uint64_t keys[TN_YOUNG]; /* 0: a hole */
    struct tn_block *blocks[TN_YOUNG];
    uint32_t holes; /* bit i: place i is one; while the set rests there are none, and no blocks */
    uint32_t next;  /* place that is given up next */
    uint32_t old;   /* blocks that grew old, and that left young, since it was looked */
    uint32_t left;  /* ... */
    uint32_t rest;  /* blocks to be filed that do not become young */
    uint32_t pause; /* rest, the last time */
};

/* Orders as (size, address) do. */
static inline uint64_t tn_young_key(uint64_t size, uint64_t address)
{
    return size >> TN_YOUNG_UNIT_BITS << TN_YOUNG_ADDRESS_BITS | address >> TN_YOUNG_UNIT_BITS;
}

static inline bool tn_young_has_key(uint64_t size, uint64_t address)
{
    return size >> (TN_YOUNG_UNIT_BITS + TN_YOUNG_SIZE_BITS) == 0 &&
           address >> (TN_YOUNG_UNIT_BITS + TN_YOUNG_ADDRESS_BITS) == 0;
}

static inline bool tn_block_is_young(const struct tn_block *block)
{
    return block->filed - 1U < TN_YOUNG;
}

/* There is a hole. */
static inline void tn_young_insert(struct tn_young *young, struct tn_block *block)
{
    const unsigned place = tn_lowest_bit(young->holes);

    tn_assert(young->holes != 0 && tn_young_has_key(block->size, block->address));
    young->holes &= young->holes - 1;
    young->keys[place] = tn_young_key(block->size, block->address);
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
           young->keys[place] == tn_young_key(block->size, block->address);
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
    return young->holes == (young->rest > 0 && count == 0 ? 0 : empty) ? count : UINT64_MAX;
}

/* The lowest key at or above a key, not 0; NULL if there is none. A key below it, or a hole, is
 * further away than any, because differences wrap around. */
static inline struct tn_block *tn_young_from(const struct tn_young *young, uint64_t key)
{
    uint64_t least = INT64_MAX;
    unsigned place = 0;

    tn_assert(key > 0);
    for (unsigned i = 0; i < TN_YOUNG; i++) {
        const uint64_t distance = young->keys[i] - key;
        const bool is_less = distance < least;

        least = is_less ? distance : least;
        place = is_less ? i : place;
    }
    return least == INT64_MAX ? NULL : young->blocks[place];
}

/* The highest key below a key, NULL if there is none. */
static inline struct tn_block *tn_young_before(const struct tn_young *young, uint64_t key)
{
    struct tn_block *best = NULL;
    uint64_t most = 0; /* a hole is not above it */

    for (unsigned i = 0; i < TN_YOUNG; i++) {
        if (young->keys[i] < key && young->keys[i] > most) {
            most = young->keys[i];
            best = young->blocks[i];
        }
    }
    return best;
}

#endif
