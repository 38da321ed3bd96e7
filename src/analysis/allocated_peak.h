/* SPDX-License-Identifier: MIT */
/*
 * The peak of allocated bytes as PyTorch's max_memory_allocated() counts them: whole blocks, with
 * what rounding adds to requests and remainders that were not split off, from the allocation until
 * the free is requested. A timeline counts requested bytes until the free is complete.
 */
#ifndef TN_ANALYSIS_ALLOCATED_PEAK_H
#define TN_ANALYSIS_ALLOCATED_PEAK_H

#include "analysis/timeline.h"

struct tn_allocated_peak {
    uint64_t entry; /* the first of equals; TN_NEVER: before the first entry */
    uint64_t bytes;
};

/* Of the whole trace, by a timeline of all of it. False when host memory is missing. Cost:
 * O(entries log blocks). */
bool tn_allocated_peak_find(struct tn_allocated_peak *peak,
                            const struct tn_timeline *timeline) TN_MUST_CHECK;

#endif
