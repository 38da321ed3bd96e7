/* SPDX-License-Identifier: MIT */
/*
 * Retired addresses: a page that moved is still mapped where it was, because kernels that are
 * running may use the old address. Once an event recorded after the free is done, the address is
 * unmapped. Until then nothing can be mapped there.
 *
 * Owns: the events it was given. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_COMPACT_RETIRED_H
#define TN_ALLOC_COMPACT_RETIRED_H

#include "alloc/compact/stream_order.h"

/* Pages [begin, end) of a segment. */
struct tn_retired_run {
    struct tn_segment *segment;
    uint64_t begin;
    uint64_t end;
    tn_event_handle event; /* 0: unmapping failed, to be tried again */
    bool owns_event;       /* the last run that waits for it */
};

struct tn_retired {
    struct tn_stream_order *order; /* events come from there */
    struct tn_vec runs;            /* struct tn_retired_run; those of one event are adjacent */
    uint64_t pages;                /* of all runs */
    uint64_t pages_most;           /* at any time */
};

void tn_retired_init(struct tn_retired *retired, struct tn_stream_order *order);
void tn_retired_fini(struct tn_retired *retired);

/* Makes room to add one run. */
bool tn_retired_reserve(struct tn_retired *retired) TN_MUST_CHECK;

/* Adds a run whose pages are gone from its segment's records; there must be room. */
void tn_retired_add(struct tn_retired *retired, const struct tn_retired_run *run);

/* Unmaps what no kernel can use any more; with `wait` everything, after waiting for it. Not while
 * requests are routed to private pools, unless `wait` is false and nothing is looked at. */
enum tarn_status tn_retired_unmap(struct tn_retired *retired, bool wait,
                                  struct tarn_error *error) TN_MUST_CHECK;

/* Whether one of these pages is retired. */
bool tn_retired_has(const struct tn_retired *retired, const struct tn_segment *segment,
                    uint64_t begin, uint64_t end);

#endif
