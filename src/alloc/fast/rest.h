/* SPDX-License-Identifier: MIT */
/*
 * How long something that did not pay is left alone: some number of times, twice as many each time
 * that it still does not pay, up to a bound. What pays again begins from the start.
 *
 * All zero is at work. Cost: O(1).
 */
#ifndef TN_ALLOC_FAST_REST_H
#define TN_ALLOC_FAST_REST_H

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_REST_MIN = 1024,
    TN_REST_MAX = 16384
};

struct tn_rest {
    uint32_t left;  /* times to be left alone; 0: at work */
    uint32_t pause; /* length of the last rest, 0 after it paid */
};

/* It was looked whether it pays: a rest begins if not. */
static inline void tn_rest_judge(struct tn_rest *rest, bool pays)
{
    const uint32_t longer = rest->pause < TN_REST_MAX / 2 ? 2 * rest->pause : TN_REST_MAX;
    const uint32_t next = rest->pause == 0 ? TN_REST_MIN : longer;

    rest->pause = pays ? 0 : next;
    rest->left = rest->pause;
}

#endif
