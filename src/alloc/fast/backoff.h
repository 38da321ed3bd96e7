/* SPDX-License-Identifier: MIT */
/*
 * Backing off from what does not pay: it is left alone for some number of times, twice as many each
 * time that it still does not pay, up to a bound. What pays again begins from the start.
 *
 * All zero is at work. Cost: O(1).
 */
#ifndef TN_ALLOC_FAST_BACKOFF_H
#define TN_ALLOC_FAST_BACKOFF_H

#include "alloc/config/fast_path.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_BACKOFF_MIN = 1024,
    TN_BACKOFF_MAX = 16384
};

struct tn_backoff {
    uint32_t left;   /* times to be left alone; 0: at work */
    uint32_t length; /* of the last backoff, 0 after it paid */
};

/* After a look whether it pays: backs off if not. */
static inline void tn_backoff_update(struct tn_backoff *backoff, bool pays)
{
    if (pays || !TN_FAST_HAS(TN_PART_BACKOFF)) {
        backoff->length = 0;
    } else if (backoff->length == 0) {
        backoff->length = TN_BACKOFF_MIN;
    } else {
        backoff->length =
            backoff->length < TN_BACKOFF_MAX / 2 ? 2 * backoff->length : TN_BACKOFF_MAX;
    }
    backoff->left = backoff->length;
}

#endif
