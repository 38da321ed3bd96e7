/* SPDX-License-Identifier: MIT */
/*
 * Where a block ends that the file does not show: PyTorch's rounding of requests, and its rule
 * (should_split) for the remainder of a block, which becomes a free block or stays a part of it.
 */
#ifndef TN_ANALYSIS_SPLIT_RULE_H
#define TN_ANALYSIS_SPLIT_RULE_H

#include <stdbool.h>
#include <stdint.h>

#define TN_SPLIT_UNIT      ((uint64_t)512)     /* sizes of blocks are multiples */
#define TN_SPLIT_LARGE     ((uint64_t)1 << 20) /* a remainder of the large pool must be larger */
#define TN_SPLIT_UNLIMITED UINT64_MAX          /* as max_split_size */

/* Bytes that a request takes of its block. Readers keep sizes below 2^62. */
static inline uint64_t tn_split_rounded(uint64_t requested)
{
    return (requested + TN_SPLIT_UNIT - 1) / TN_SPLIT_UNIT * TN_SPLIT_UNIT;
}

/* Whether `rest` bytes after a rounded request become a free block. */
static inline bool tn_splits_off(uint64_t rest, uint64_t rounded, bool is_large, uint64_t max_split)
{
    return (is_large ? rest > TN_SPLIT_LARGE : rest >= TN_SPLIT_UNIT) && rounded < max_split;
}

#endif
