/* SPDX-License-Identifier: MIT */
#include "alloc/config/size_class.h"

#include "base/assertion.h"

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
    tn_assert(rounded <= block_size);
    return tn_block_splits(block_size - rounded, rounded, small_pool | expandable,
                           config->max_split_size);
}
