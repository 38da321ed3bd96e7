/* SPDX-License-Identifier: MIT */
#include "base/block_size.h"

uint64_t tn_block_round_to_division(uint64_t size, uint64_t divisions)
{
    if (tn_is_pow2(size)) {
        return size;
    }
    const uint64_t floor = tn_pow2_floor(size);
    const uint64_t step = floor >> tn_log2_floor(divisions);

    if (step == 0) {
        return floor << 1;
    }
    const uint64_t down = size & ~(step - 1);
    return down == size ? size : down + step;
}
