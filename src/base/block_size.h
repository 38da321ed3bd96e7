/* SPDX-License-Identifier: MIT */
/*
 * The size of the block that serves a request: how requests are rounded, and whether the remainder
 * of a free block is split off. Pure functions of numbers: the allocator decides with them
 * (alloc/config/size_class.h), and the analysis of a recorded run finds the same blocks again.
 */
#ifndef TN_BASE_BLOCK_SIZE_H
#define TN_BASE_BLOCK_SIZE_H

#include "base/attr.h"
#include "base/bits.h"

#include <stdbool.h>
#include <stdint.h>

#define TN_BLOCK_UNIT      ((uint64_t)512)     /* every block is a multiple of it */
#define TN_BLOCK_SMALL_MAX ((uint64_t)1 << 20) /* largest rounded request of the small pool */

enum {
    TN_BLOCK_INTERVALS = 16 /* of request sizes that have their own number of divisions */
};

/* Rounds up to the next of `divisions` equal steps between two powers of two: 1200 with 4 is
 * 1280. */
uint64_t tn_block_round_to_division(uint64_t size, uint64_t divisions);

/* Index into the table of divisions: 0 below 2 MiB, then one for each power of two. */
static inline unsigned tn_block_interval(uint64_t size)
{
    const unsigned interval = tn_log2_floor(size >> 20 | 1);

    return interval < TN_BLOCK_INTERVALS ? interval : TN_BLOCK_INTERVALS - 1;
}

/* Rounds up to the unit; 0 counts as 1. `request` < 2^62. */
static inline uint64_t tn_block_round_to_unit(uint64_t request)
{
    return request < TN_BLOCK_UNIT ? TN_BLOCK_UNIT
                                   : (request + TN_BLOCK_UNIT - 1) / TN_BLOCK_UNIT * TN_BLOCK_UNIT;
}

/* The rounded request; `divisions` are those of its interval, 0 and 1 = off, at most 2^32. */
static inline uint64_t tn_block_round(uint64_t request, uint64_t divisions)
{
    if (tn_unlikely(divisions > 1 && request > TN_BLOCK_UNIT * divisions)) {
        return tn_block_round_to_division(request, divisions);
    }
    return tn_block_round_to_unit(request);
}

/* Whether the remainder of a block is split off when `rounded` bytes of it are allocated. `any`:
 * every remainder is, as in the small pool and with expandable segments. Otherwise only a remainder
 * that can serve a request of the large pool, and none of a block from `max_split` on. */
static inline bool tn_block_splits(uint64_t remainder, uint64_t rounded, bool any,
                                   uint64_t max_split)
{
    const uint64_t least = any ? TN_BLOCK_UNIT : TN_BLOCK_SMALL_MAX + 1;
    const uint64_t most = any ? UINT64_MAX : max_split;

    return (remainder >= least) & (rounded < most); /* bitwise: no branch to mispredict */
}

#endif
