/* SPDX-License-Identifier: MIT */
/* The search in the bitmaps of a free set. */
#include "bits.h"

#include "alloc/pool/free_set.h"

/* Further facts of facts.smt2. In the other files provers would only be led astray by them. */
/*@ axiomatic more_facts {
  @   axiom none_from: \forall integer x, y, k, i; x == (uint64_t)(UINT64_MAX << k) &&
  @       0 <= k <= i < 64 && (x & y) == 0 ==> !has_bit(y, i);
  @   axiom none_above: \forall integer x, y, k, i; x == (uint64_t)((UINT64_MAX - 1) << k) &&
  @       0 <= k < i < 64 && (x & y) == 0 ==> !has_bit(y, i);
  @ } */

/* The two levels of bitmaps agree. */
/*@ predicate is_marked(struct tn_free_set *bins) =
  @     \forall integer chunk; 0 <= chunk < 64 ==> (has_bit(bins->chunk_bits, chunk) <==>
  @         chunk < TN_CHUNKS && bins->bin_bits[chunk] != 0); */

/*@ predicate has_none(integer x, integer from, integer end) =
  @     \forall integer i; from <= i < end ==> !has_bit(x, i); */

/* That none is overlooked. Which bin it returns, provers do not find out: the tests of free sets
 * ask for that. */
/*@ requires \valid_read(set) && is_marked(set);
  @ requires \forall integer chunk; 0 <= chunk < TN_CHUNKS && set->bin_bits[chunk] != 0 ==>
  @     \valid_read(set->chunks[chunk] + (0 .. TN_CHUNK_BINS - 1));
  @ requires class < TN_CHUNKS * TN_CHUNK_BINS;
  @ assigns \nothing;
  @ ensures \result == \null ==> has_none(set->bin_bits[class / TN_CHUNK_BINS],
  @     class % TN_CHUNK_BINS, 64);
  @ ensures \result == \null ==> has_none(set->chunk_bits, class / TN_CHUNK_BINS + 1, 64); */
static TN_INLINE struct tn_bin *tn_free_set_next_bin(const struct tn_free_set *set, unsigned class);
