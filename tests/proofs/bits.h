/* SPDX-License-Identifier: MIT */
/* Powers of two and bit positions: proved by bits.c, and used by proofs of what calls these. */
#ifndef TN_PROOFS_BITS_H
#define TN_PROOFS_BITS_H

#include "base/bits.h"

/*@ assigns \nothing;
  @ ensures \result == (x != 0 && (x & (x - 1)) == 0); */
static inline bool tn_is_pow2(uint64_t x);

/*@ requires x != 0;
  @ assigns \nothing;
  @ ensures 0 <= \result <= 63;
  @ ensures 0 < (1 << \result) <= x;
  @ ensures (1 << (\result + 1)) == 2 * (1 << \result);
  @ ensures \result == 63 || x < (1 << (\result + 1)); */
static inline unsigned tn_log2_floor(uint64_t x);

/*@ requires x > 0;
  @ assigns \nothing;
  @ ensures is_pow2(\result);
  @ ensures x / 2 < \result <= x; */
static inline uint64_t tn_pow2_floor(uint64_t x);

/*@ requires 0 < x <= (1 << 63);
  @ assigns \nothing;
  @ ensures is_pow2(\result);
  @ ensures x <= \result;
  @ ensures \result < 2 * x; */
static inline uint64_t tn_pow2_ceil(uint64_t x);

/*@ requires x > 0;
  @ assigns \nothing;
  @ ensures 0 <= \result <= 63;
  @ ensures x % (1 << \result) == 0;
  @ ensures has_bit(x, \result);
  @ ensures \forall integer i; 0 <= i < \result ==> !has_bit(x, i); */
static inline unsigned tn_lowest_bit(uint64_t x);

#endif
