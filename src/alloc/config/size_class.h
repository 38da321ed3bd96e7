/* SPDX-License-Identifier: MIT */
/*
 * Sizes: how a request is rounded, which pool it belongs to, how large a segment to ask the device
 * for, and when a block is split. Pure functions of the request and the settings. The numbers are
 * PyTorch's (CUDACachingAllocator: round_size, get_pool, get_allocation_size, should_split); those
 * that analyses of recorded runs need as well are in base/block_size.h. Which free block a request
 * takes, and what max_split_size says about that, is pool/best_fit.h's.
 */
#ifndef TN_ALLOC_CONFIG_SIZE_CLASS_H
#define TN_ALLOC_CONFIG_SIZE_CLASS_H

#include "base/assertion.h"
#include "base/block_size.h"
#include "tarn/config.h"

#define TN_MIN_BLOCK_SIZE TN_BLOCK_UNIT
#define TN_SMALL_SIZE     TN_BLOCK_SMALL_MAX
#define TN_SMALL_BUFFER   ((uint64_t)2 << 20) /* segment of the small pool */
/* From this rounded size on a request gets a segment of its own. */
#define TN_MIN_LARGE_ALLOC ((uint64_t)10 << 20)
#define TN_LARGE_BUFFER    ((uint64_t)20 << 20) /* default segment for 1 to 10 MiB */
#define TN_ROUND_LARGE     ((uint64_t)2 << 20)  /* larger segments are multiples of it */

/* Requests of this size (1 EiB) and more are refused before anything else happens. */
#define TN_MAX_REQUEST ((uint64_t)1 << 60)

/* Size of the block that serves a request. `request` < TN_MAX_REQUEST; 0 counts as 1. */
static inline uint64_t tn_round_size(uint64_t request, const struct tarn_config *config)
{
    tn_assert(request < TN_MAX_REQUEST);
    if (request < TN_MIN_BLOCK_SIZE) {
        return TN_MIN_BLOCK_SIZE;
    }
    return tn_block_round(request, config->roundup_power2_divisions[tn_block_interval(request)]);
}

static inline bool tn_size_is_small(uint64_t rounded)
{
    return rounded <= TN_SMALL_SIZE;
}

/* Bytes to ask the device for, to serve a rounded request. */
static inline uint64_t tn_segment_size(uint64_t rounded, const struct tarn_config *config)
{
    tn_assert(rounded <= TN_MAX_REQUEST);
    if (rounded <= TN_SMALL_SIZE) {
        return TN_SMALL_BUFFER;
    }
    if (rounded < TN_MIN_LARGE_ALLOC) {
        return config->large_segment_size;
    }
    return (rounded + TN_ROUND_LARGE - 1) / TN_ROUND_LARGE * TN_ROUND_LARGE;
}

/* Whether the remainder of a block is split off when `rounded` bytes of its `block_size` are
 * allocated; `expandable`: for a request that expandable segments may serve. */
static inline bool tn_should_split(uint64_t block_size, uint64_t rounded, bool small_pool,
                                   bool expandable, const struct tarn_config *config)
{
    tn_assert(rounded <= block_size);
    return tn_block_splits(block_size - rounded, rounded, small_pool | expandable,
                           config->max_split_size);
}

#endif
