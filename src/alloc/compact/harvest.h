/* SPDX-License-Identifier: MIT */
/*
 * Taking whole free pages from where they are. Sources, in the order in which they are asked: the
 * stream that needs them, whose own work is in order; other streams whose work on the page is done;
 * and, when told so, other streams that the stream then waits for on the device. Of each of these
 * first the pools of the request itself, then all others by priority, the default ones with 0, up
 * to the request's.
 *
 * Never taken: pages of private pools that captured graphs may use, that have a checkpoint or
 * sleep, or whose blocks are not split; and pages that were shared with other processes. Guarded by
 * the heap's lock.
 */
#ifndef TN_ALLOC_COMPACT_HARVEST_H
#define TN_ALLOC_COMPACT_HARVEST_H

#include "alloc/compact/page_store.h"
#include "alloc/compact/retired.h"

enum tn_harvest_from {
    TN_HARVEST_SAME_STREAM,
    TN_HARVEST_DONE,    /* other streams: what their work is done with */
    TN_HARVEST_ORDERED, /* other streams: the stream waits for them */
    TN_HARVEST_ALL_DONE /* all streams: what their work is done with; for nobody */
};

/* What is needed, and for whom. */
struct tn_harvest {
    struct tn_heap *heap;
    struct tn_stream_order *order;
    struct tn_retired *retired;
    struct tn_page_store *store; /* gets the pages */
    tarn_stream stream;
    const struct tn_private_pool *owner; /* whose request it is; NULL: the default pools' */
    bool own_only;                       /* nothing but the pools of the request itself */
    bool not_in_turns;                   /* nothing of streams that take turns */
    int64_t priority;                    /* pools with a higher one keep their pages */
    uint64_t keep_begin; /* addresses whose pages stay: the place they are wanted for */
    uint64_t keep_end;
    uint64_t wanted; /* pages; decreases as they are found */
    uint64_t stack;
    uint64_t taken; /* pages that were mapped elsewhere */
};

/* Marks the streams that have free pages which no mark follows, so that other streams may have them
 * once the marks are done. Not while requests are routed to private pools. */
void tn_harvest_prepare(const struct tn_heap *heap, struct tn_stream_order *order);

/* Pages that the set, of the same stream, has of those wanted, or more. */
uint64_t tn_harvest_count(const struct tn_harvest *harvest, const struct tn_free_set *set);

/* Whether the request's own private pools have all that is wanted, on streams that are done with it
 * or not. */
bool tn_harvest_own_suffice(const struct tn_harvest *harvest);

/* Takes up to `wanted` pages. Does nothing while requests are routed to private pools, unless no
 * event is needed. On failure what was taken is in the store. */
enum tarn_status tn_harvest_take(struct tn_harvest *harvest, enum tn_harvest_from from,
                                 struct tarn_error *error) TN_MUST_CHECK;

#endif
