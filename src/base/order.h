/* SPDX-License-Identifier: MIT */
/* Comparing for qsort: below, equal to or above 0. */
#ifndef TN_BASE_ORDER_H
#define TN_BASE_ORDER_H

#include <stdint.h>

static inline int tn_order(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Of arrays of uint64_t, ascending. */
static inline int tn_order_numbers(const void *left, const void *right)
{
    return tn_order(*(const uint64_t *)left, *(const uint64_t *)right);
}

#endif
