/* SPDX-License-Identifier: MIT */
/* Pages that an allocator of the compact policy creates and moves (policy:compact). */
#ifndef TARN_PAGES_H
#define TARN_PAGES_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;

enum {
    TARN_PAGE_TIMES = 24
};

/* Totals since the allocator was created. */
struct tarn_page_stats {
    uint32_t struct_size; /* in: sizeof(struct tarn_page_stats) */
    uint64_t page_size;   /* in bytes */
    uint64_t created;     /* pages taken from the device */
    uint64_t moved;       /* pages that were free elsewhere and are mapped at a new address */
    uint64_t kept;        /* now: pages mapped nowhere, left over from requests that failed */
    uint64_t retired;     /* now: old addresses that stay mapped until work in progress is done */
    uint64_t requests;    /* requests for which pages were created or moved, or that failed */
    uint64_t request_ns;  /* time of these on the host, in nanoseconds, waits included */
    uint64_t longest_ns;  /* the longest one */
    /* How many of them took less than 2^i microseconds and no less than half of it; the last counts
     * all longer ones. */
    uint64_t by_time[TARN_PAGE_TIMES];
};

/* All counters, read at the same point in time. Fields beyond struct_size are not written. All are
 * 0 under another policy. Thread-safe. */
TARN_API void tarn_allocator_get_page_stats(struct tarn_allocator *allocator,
                                            struct tarn_page_stats *stats_out);

#ifdef __cplusplus
}
#endif

#endif
