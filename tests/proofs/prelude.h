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

/* Locks are no part of what is proved, and theirs are types that Frama-C does not read. */
#define TN_BASE_BIASED_LOCK_H
struct tn_seat;
struct tn_biased_lock {
    int word;
};

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
  @ ensures x % (1 << \result) == 0; */
int __builtin_ctzll(unsigned long long x);

#endif
