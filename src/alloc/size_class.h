/* SPDX-License-Identifier: MIT */
/*
 * Sizes: how a request is rounded, which pool it belongs to, how large a segment to ask the device
 * for, and when a block is split. Pure functions of the request and the settings. The numbers are
 * PyTorch's (CUDACachingAllocator: round_size, get_pool, get_allocation_size, should_split).
 */
#ifndef TN_ALLOC_SIZE_CLASS_H
#define TN_ALLOC_SIZE_CLASS_H

#include "tarn/config.h"

#define TN_MIN_BLOCK_SIZE ((uint64_t)512)     /* every block is a multiple of it */
#define TN_SMALL_SIZE     ((uint64_t)1 << 20) /* largest rounded request of the small pool */
#define TN_SMALL_BUFFER   ((uint64_t)2 << 20) /* segment of the small pool */
#define TN_MIN_LARGE_ALLOC                                                                         \
    ((uint64_t)10 << 20)                     /* from here on a segment is made for one request
                                                     */
#define TN_LARGE_BUFFER ((uint64_t)20 << 20) /* default segment for 1 to 10 MiB */
#define TN_ROUND_LARGE  ((uint64_t)2 << 20)  /* unit of larger segments */
#define TN_MAX_REQUEST                                                                             \
    ((uint64_t)1 << 60) /* 1 EiB and more is refused before anything else
                                                     */

/* Bytes that a block for this request has. `request` < TN_MAX_REQUEST; 0 counts as 1. */
uint64_t tn_round_size(uint64_t request, const struct tarn_config *config);

static inline bool tn_size_is_small(uint64_t rounded)
{
    return rounded <= TN_SMALL_SIZE;
}

/* Bytes to ask the device for, to serve a rounded request. */
uint64_t tn_segment_size(uint64_t rounded, const struct tarn_config *config);

/* Whether the rest of a block is split off when `rounded` bytes of its `block_size` are handed out;
 * `grows`: to a request that growing segments may serve. */
bool tn_should_split(uint64_t block_size, uint64_t rounded, bool small_pool, bool grows,
                     const struct tarn_config *config);

#endif
