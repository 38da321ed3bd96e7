/* SPDX-License-Identifier: MIT */
/*
 * The blocks of a page that do not have just their rounded request (analysis/block_extent.h),
 * which are few: number of the lifetime, as a step from the one before, and size. The page rounds
 * requests itself, by the settings in its head.
 */
#ifndef TN_PAGE_BLOCK_SIZES_H
#define TN_PAGE_BLOCK_SIZES_H

#include "analysis/block_extent.h"
#include "page/column.h"

struct tn_block_sizes {
    struct tn_block_extents extents;
    struct tn_column column;
    uint64_t last; /* lifetime that was added last */
};

/* False when host memory is missing; then there is nothing to release. */
bool tn_block_sizes_init(struct tn_block_sizes *sizes,
                         const struct tn_trace_source *source) TN_MUST_CHECK;
void tn_block_sizes_fini(struct tn_block_sizes *sizes);

/* A block of the page, which entry `start` allocated; TN_NEVER: that was there before the trace.
 * Lifetimes are added in the order of their numbers. */
void tn_block_sizes_add(struct tn_block_sizes *sizes, uint64_t lifetime, uint64_t start,
                        uint64_t address, uint64_t requested);

#endif
