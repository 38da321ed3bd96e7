/* SPDX-License-Identifier: MIT */
/* Rounding to divisions: proved by division.c, and used by proofs of what calls it. */
#ifndef TN_PROOFS_DIVISION_H
#define TN_PROOFS_DIVISION_H

#include "bits.h"

#include "base/block_size.h"

/*@ requires 0 < size < (1 << 62) && 1 < divisions <= (1 << 32) && size > 512 * divisions;
  @ assigns \nothing;
  @ ensures \result % 512 == 0;
  @ ensures size <= \result < 2 * size; */
uint64_t tn_block_round_to_division(uint64_t size, uint64_t divisions);

#endif
