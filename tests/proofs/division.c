/* SPDX-License-Identifier: MIT */
/* Requests that are rounded up to a part of a power of two. */
#include "division.h"

/* As the facts of prelude.h; here, because other proofs become slower by them. */
/*@ axiomatic facts_of_steps {
  @   axiom step: \forall integer f, k; is_pow2(f) && 0 <= k < 64 && 256 * (1 << k) < f ==>
  @       512 <= (f >> k) <= f && is_pow2(f >> k);
  @   axiom align: \forall integer x, y; 0 <= x <= UINT64_MAX && is_pow2(y + 1) && 511 <= y ==>
  @       x - y <= (x & (uint64_t)~y) <= x && (x & (uint64_t)~y) % 512 == 0 && y % 512 == 511;
  @   axiom one_bit: \forall integer x; 512 <= x <= UINT64_MAX && (x & (x - 1)) == 0 ==>
  @       x % 512 == 0;
  @ } */

#include "base/block_size.c"
