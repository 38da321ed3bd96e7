/* SPDX-License-Identifier: MIT */
/* The search in the bitmaps of a free set. */
#include "bits.h"

#include "alloc/pool/free_set.h"

/* Further facts of facts.smt2. In the other files provers would only be led astray by them. */
/*@ axiomatic more_facts {
  @   axiom none_from: \forall integer x, y, k, i; x == (uint64_t)(UINT64_MAX << k) &&
  @       0 <= k <= i < 64 && (x & y) == 0 ==> !has_bit(y, i);
  @   axiom bits_from: \forall integer x, y, k, i; x == (uint64_t)(UINT64_MAX << k) &&
  @       0 <= k < 64 && 0 <= i < 64 ==> (has_bit(x & y, i) <==> k <= i && has_bit(y, i));
  @   axiom bits_above: \forall integer x, y, k, i; x == (uint64_t)((UINT64_MAX - 1) << k) &&
  @       0 <= k < 64 && 0 <= i < 64 ==> (has_bit(x & y, i) <==> k < i && has_bit(y, i));
  @ } */

/* The two levels of bitmaps agree. */
/*@ predicate is_marked(struct tn_free_set *bins) =
  @     \forall integer chunk; 0 <= chunk < 64 ==> (has_bit(bins->chunk_bits, chunk) <==>
  @         chunk < TN_CHUNKS && bins->bin_bits[chunk] != 0); */

/*@ predicate has_none(integer x, integer from, integer end) =
  @     \forall integer i; from <= i < end ==> !has_bit(x, i); */

/* The class that is returned has a block, and none before it has. */
/*@ requires \valid_read(set) && is_marked(set);
  @ requires class < TN_CHUNKS * TN_CHUNK_BINS;
  @ assigns \nothing;
  @ ensures \result <= TN_NO_CLASS;
  @ ensures \result == TN_NO_CLASS ==> has_none(set->bin_bits[class / TN_CHUNK_BINS],
  @     class % TN_CHUNK_BINS, 64);
  @ ensures \result == TN_NO_CLASS ==>
  @     has_none(set->chunk_bits, class / TN_CHUNK_BINS + 1, 64);
  @ ensures \result < TN_NO_CLASS ==> class <= \result;
  @ ensures \result < TN_NO_CLASS ==>
  @     has_bit(set->bin_bits[\result / TN_CHUNK_BINS], \result % TN_CHUNK_BINS);
  @ ensures \result / TN_CHUNK_BINS == class / TN_CHUNK_BINS ==>
  @     has_none(set->bin_bits[class / TN_CHUNK_BINS], class % TN_CHUNK_BINS,
  @         \result % TN_CHUNK_BINS);
  @ ensures \result < TN_NO_CLASS && \result / TN_CHUNK_BINS > class / TN_CHUNK_BINS ==>
  @     has_none(set->bin_bits[class / TN_CHUNK_BINS], class % TN_CHUNK_BINS, 64);
  @ ensures \result < TN_NO_CLASS && \result / TN_CHUNK_BINS > class / TN_CHUNK_BINS ==>
  @     has_none(set->chunk_bits, class / TN_CHUNK_BINS + 1, \result / TN_CHUNK_BINS);
  @ ensures \result < TN_NO_CLASS && \result / TN_CHUNK_BINS > class / TN_CHUNK_BINS ==>
  @     has_none(set->bin_bits[\result / TN_CHUNK_BINS], 0, \result % TN_CHUNK_BINS); */
static TN_INLINE unsigned tn_free_set_next_class(const struct tn_free_set *set, unsigned class);
