/* SPDX-License-Identifier: MIT */
/*
 * For Frama-C 25: what it does not read is taken away, and what it does not know is described.
 * Nothing here changes what the functions under proof compute.
 */
#ifndef TN_PROOFS_PRELUDE_H
#define TN_PROOFS_PRELUDE_H

#include <assert.h>
#include <stdatomic.h>
#include <stdint.h>

#undef static_assert
#define static_assert(condition, text) struct tn_asserted
#define _Noreturn
#define _Alignas(x)
#undef _Atomic
#define _Atomic
#define __builtin_expect(x, likely) (x)

/* Its enums are constants by comparison; what is asserted is what the contracts require. */
#define TN_BASE_ASSERTION_H
#define tn_assert(x)      ((void)0)
#define tn_assert_slow(x) ((void)0)
#define tn_always(x)      (x)
#define tn_never(x)       (x)

/* Locks are no part of what is proved, and theirs are types that Frama-C does not read. */
#define TN_BASE_BIASED_LOCK_H
struct tn_seat;
struct tn_biased_lock {
    int word;
};

/*@ predicate has_bit(integer x, integer i) = (x & (1 << i)) != 0;
  @ predicate is_with_bit(integer x, integer before, integer bit) = \forall integer i;
  @     0 <= i < 64 ==> (has_bit(x, i) <==> i == bit || has_bit(before, i));
  @ predicate is_without_bit(integer x, integer before, integer bit) = \forall integer i;
  @     0 <= i < 64 ==> (has_bit(x, i) <==> i != bit && has_bit(before, i));
  @ predicate is_pow2(integer x) = \exists integer i; 0 <= i < 64 && x == (1 << i); */

/* What provers do not have about powers of two and the bits of 64-bit numbers. facts.smt2 has the
 * same of vectors of 64 bits, for which Z3 proves it. */
/*@ axiomatic facts {
  @   axiom shift_20: \forall integer x; 0 <= x <= UINT64_MAX ==> (x >> 20) == x / (1 << 20);
  @   axiom shifted: \forall integer x, k; 0 <= x <= UINT64_MAX && 0 <= k < 64 ==>
  @       (x >> k) * (1 << k) <= x < ((x >> k) + 1) * (1 << k);
  @   axiom shifted_to_7_bits: \forall integer x, k; 0 <= x <= UINT64_MAX && 0 <= k < 58 &&
  @       (1 << (k + 6)) <= x < (1 << (k + 7)) ==> 64 <= (x >> k) < 128;
  @   axiom powers_rise: \forall integer i, k; 0 <= i <= k < 64 ==> (1 << i) <= (1 << k);
  @   axiom powers_to_64: \forall integer k; 0 <= k <= 6 ==> (1 << k) <= 64;
  @   axiom powers_from_2_24: \forall integer k; 24 <= k < 64 ==> (1 << 24) <= (1 << k);
  @   axiom or_1: \forall integer x, k; 0 <= x <= UINT64_MAX && 0 < k < 64 ==>
  @       ((1 << k) <= (x | 1) <==> (1 << k) <= x);
  @   axiom or_64: \forall integer x, k; 0 <= x <= UINT64_MAX && 6 < k < 64 ==>
  @       ((1 << k) <= (x | 64) <==> (1 << k) <= x);
  @   axiom or_64_least: \forall integer x; 0 <= x <= UINT64_MAX ==> 64 <= (x | 64);
  @   axiom mask: \forall integer x, y, k; 0 <= x <= UINT64_MAX && 0 <= k < 64 &&
  @       y + 1 == (1 << k) ==> (x & y) == x % (1 << k);
  @   axiom powers_to_2_17: \forall integer k; 0 <= k <= 17 ==> 1 <= (1 << k) <= (1 << 17);
  @   axiom beside_39: \forall integer x, y; 0 <= x < (1 << 39) && 0 <= y < (1 << 24) ==>
  @       (x | (y << 39)) == x + y * (1 << 39);
  @   axiom shift_39: \forall integer x; 0 <= x < (1 << 24) ==> (x << 39) == x * (1 << 39);
  @   axiom shift_6: \forall integer x; 0 <= x < (1 << 56) ==> (x << 6) == x * 64;
  @ } */

/* The last two are facts about powers of two and about numbers up to 63 that provers do not
 * have. */
/*@ requires x > 0;
  @ assigns \nothing;
  @ ensures 0 <= \result <= 63;
  @ ensures (63 ^ \result) == 63 - \result;
  @ ensures 0 < (1 << (63 - \result)) <= x;
  @ ensures (1 << (64 - \result)) == 2 * (1 << (63 - \result));
  @ ensures \result == 0 || x < (1 << (64 - \result)); */
int __builtin_clzll(unsigned long long x);

/*@ requires x > 0;
  @ assigns \nothing;
  @ ensures 0 <= \result <= 63;
  @ ensures x % (1 << \result) == 0;
  @ ensures has_bit(x, \result);
  @ ensures \forall integer i; 0 <= i < \result ==> !has_bit(x, i); */
int __builtin_ctzll(unsigned long long x);

#endif
