/* SPDX-License-Identifier: MIT */
#include "alloc/config/size_class.h"

#include "base/assertion.h"
#include "base/bits.h"

uint64_t tn_round_to_division(uint64_t size, uint64_t divisions)
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

uint64_t tn_segment_size(uint64_t rounded, const struct tarn_config *config)
{
    if (rounded <= TN_SMALL_SIZE) {
        return TN_SMALL_BUFFER;
    }
    if (rounded < TN_MIN_LARGE_ALLOC) {
        return config->large_segment_size;
    }
    return (rounded + TN_ROUND_LARGE - 1) / TN_ROUND_LARGE * TN_ROUND_LARGE;
}

bool tn_should_split(uint64_t block_size, uint64_t rounded, bool small_pool, bool expandable,
                     const struct tarn_config *config)
{
    const uint64_t remainder = block_size - rounded;

    tn_assert(rounded <= block_size);
    const bool any = small_pool | expandable; /* bitwise: no branch to mispredict */
    const uint64_t least = any ? TN_MIN_BLOCK_SIZE : TN_SMALL_SIZE + 1;
    const uint64_t most = any ? UINT64_MAX : config->max_split_size;

    return (remainder >= least) & (rounded < most);
}
