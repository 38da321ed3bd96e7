/* SPDX-License-Identifier: MIT */
/*
 * Backing off from an optimization that does not pay: it is left out a number of times, and twice
 * as often each time it still does not pay, up to a bound. Once it pays, the number starts again
 * from the minimum.
 *
 * All zero: not backing off. Cost: O(1).
 */
#ifndef TN_ALLOC_FAST_BACKOFF_H
#define TN_ALLOC_FAST_BACKOFF_H

#include "alloc/config/fast_path.h"
#include "base/assertion.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_BACKOFF_MIN = 1024,
    TN_BACKOFF_MAX = 16384
};

struct tn_backoff {
    uint32_t left;   /* times still to be left out; 0: in use */
    uint32_t length; /* of the last backoff, 0 after it paid */
};

/* Called with a verdict whether it pays: backs off if not. */
static inline void tn_backoff_update(struct tn_backoff *backoff, bool pays)
{
    tn_assert(backoff->length <= TN_BACKOFF_MAX);
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
