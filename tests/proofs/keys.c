/* SPDX-License-Identifier: MIT */
/* The keys of bins. */
#include "bits.h"

#include "alloc/pool/bin.h"

/*@ predicate drops(integer units, integer bits) = 0 <= bits && units < (1 << (bits + 7)) &&
  @     (bits > 0 ==> (1 << (bits + 6)) <= units); */

/*@ requires units < (1 << 55);
  @ assigns \nothing;
  @ ensures drops(units, \result);
  @ ensures 0 <= units % (1 << \result) < (1 << \result);
  @ ensures \result <= 57;
  @ ensures units < (1 << 24) ==> \result <= 17; */
static inline unsigned tn_bin_dropped_bits(uint64_t units);

/*@ requires size < TN_BIN_SIZE_END && place < TN_BIN_PLACE_END;
  @ assigns \nothing;
  @ ensures \exists integer bits; drops(size / 512, bits) && \result == TN_BIN_KEY_BASE +
  @     (size / 512 % (1 << bits) * (1 << TN_BIN_KEY_PLACE_BITS) + place / 512) * TN_LEAF_SLOTS;
  @ ensures TN_BIN_KEY_BASE <= \result < TN_BIN_KEY_NONE; */
static inline uint64_t tn_bin_key(uint64_t size, uint64_t place);
