/* SPDX-License-Identifier: MIT */
/* Powers of two and bit positions. */
#ifndef TN_BASE_BITS_H
#define TN_BASE_BITS_H

#include <stdbool.h>
#include <stdint.h>

static inline bool tn_is_pow2(uint64_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

/* Position of the highest set bit; x > 0. */
static inline unsigned tn_log2_floor(uint64_t x)
{
    return 63u ^ (unsigned)__builtin_clzll(x); /* one instruction on x86, a difference is three */
}

/* Largest power of two <= x; x > 0. */
static inline uint64_t tn_pow2_floor(uint64_t x)
{
    return (uint64_t)1 << tn_log2_floor(x);
}

/* Smallest power of two >= x; 0 < x <= 2^63. */
static inline uint64_t tn_pow2_ceil(uint64_t x)
{
    return x == 1 ? 1 : (uint64_t)1 << (tn_log2_floor(x - 1) + 1);
}

/* Position of the lowest set bit; x > 0. */
static inline unsigned tn_lowest_bit(uint64_t x)
{
    return (unsigned)__builtin_ctzll(x);
}

#endif
