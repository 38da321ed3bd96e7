/* SPDX-License-Identifier: MIT */
/*
 * The compact policy: a request that no free block fits, or one only in the middle of a hole, goes
 * where the fewest pages are missing (placement.h), and these come from wherever whole pages are
 * free (harvest.h) before the device is asked for new ones. README.md explains it.
 *
 * Segments are expandable ones with pages of 2 MiB in both pools. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_COMPACT_COMPACT_H
#define TN_ALLOC_COMPACT_COMPACT_H

#include "alloc/compact/page_store.h"
#include "alloc/compact/retired.h"
#include "alloc/compact/slack.h"
#include "alloc/pool/best_fit.h"
#include "tarn/pages.h"

struct tn_compact {
    struct tn_heap *heap;
    uint64_t begin_ns; /* when the allocator was created, on the device's clock */
    struct tn_stream_order order;
    struct tn_retired retired;
    struct tn_page_store store;
    struct tn_slack slack;
    uint64_t pages_moved;   /* from one place to another, since the beginning */
    uint64_t pages_created; /* likewise */
    uint64_t moving_ns;     /* what moving took, or was assumed to take */
    uint64_t request_ns;    /* what the latest request has cost so far, by the times below */
    uint64_t longest_ns;    /* what the most expensive request cost */
    uint64_t shed_pause;    /* calls of tn_compact_shed that do nothing, because nothing could go */
    uint64_t shed_pauses;   /* how many there are the next time */
    struct tarn_page_stats measured; /* only what tn_compact_measured notes */
};

/* Measured on an H200, driver 580, for one page: unmapping and mapping it elsewhere; creating and
 * mapping it. Both hardly depend on its size; another host needs 58 and 48 us. */
enum {
    TN_PAGE_MOVE_NS = 31000,
    TN_PAGE_CREATE_NS = 26000
};

/* How far an allocation may go for its pages. */
enum tn_compact_effort {
    TN_COMPACT_FREE,   /* free pages that nothing waits for, then new ones */
    TN_COMPACT_ORDERED /* also those that the stream can use after waiting for other streams */
};

void tn_compact_init(struct tn_compact *compact, struct tn_heap *heap);

/* Unmaps retired addresses and gives the store back, whatever runs on the device. */
void tn_compact_fini(struct tn_compact *compact);

static inline bool tn_compact_is_on(const struct tn_heap *heap)
{
    return heap->config.policy == TARN_POLICY_COMPACT;
}

/* Gives request->block, for which pages may have moved: in no set, at least request->size bytes.
 * TARN_ERR_NOT_FOUND when there are not enough pages; those found are in the store then. May use up
 * what tn_request_prepare reserved. */
enum tarn_status tn_compact_alloc(struct tn_compact *compact, struct tn_request *request,
                                  enum tn_compact_effort effort,
                                  struct tarn_error *error) TN_MUST_CHECK;

/* The same from the free block that fits best, wherever it lies; false if there is none. */
bool tn_compact_take_free(struct tn_compact *compact, struct tn_request *request) TN_MUST_CHECK;

/* Pages moved and created so far. */
static inline uint64_t tn_compact_pages(const struct tn_compact *compact)
{
    return compact->pages_moved + compact->pages_created;
}

/* Notes how long a request took for which pages were needed. */
void tn_compact_measured(struct tn_compact *compact, uint64_t ns);

/* Whether max_cached_mb limits what is free. */
static inline bool tn_compact_limits_cache(const struct tn_heap *heap)
{
    return heap->config.max_cached != TARN_SIZE_UNLIMITED && tn_compact_is_on(heap);
}

/* Gives free pages back to the device as far as more is cached than max_cached_mb allows: those
 * that no work uses any more, and no more than a millisecond's worth. After a call that may have
 * freed something. Counters must be up to date. */
void tn_compact_shed(struct tn_compact *compact, uint64_t stack);

/* Fills in all but struct_size. */
void tn_compact_read(const struct tn_compact *compact, struct tarn_page_stats *stats_out);

/* Notes that blocks which other streams used have become free: their pages can be had once their
 * own stream is done with them, too. Not while requests are routed to private pools. */
void tn_compact_mark(struct tn_compact *compact);

/* Whether no page can be given back to the device now: some may still be mapped at an old address,
 * and requests are routed to private pools, so that no event may be looked at. */
bool tn_compact_must_stay(const struct tn_compact *compact);

/* Waits until no old address is in use, unmaps all of them and gives the store back to the device:
 * before the cache is emptied. Not if pages must stay. */
enum tarn_status tn_compact_settle(struct tn_compact *compact,
                                   struct tarn_error *error) TN_MUST_CHECK;

#endif
