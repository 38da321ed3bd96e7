/* SPDX-License-Identifier: MIT */
/*
 * Private pools: memory kept apart for captured graphs or by a user's choice. While there is a
 * route to a pool (begin ... end), requests that the route's filter accepts are served from the
 * pool; the latest route is asked first. A route is not a capture: those are announced apart. A
 * pool lives while its use count is above 0 or it has segments. A pool made as a handle is open,
 * until requests are routed to it: its free blocks may be released while it is used.
 *
 * Owns: pools, their records and the list of routes. Guarded by the heap's lock; filters are called
 * under it and must not call the allocator.
 */
#ifndef TN_ALLOC_POOL_PRIVATE_POOL_H
#define TN_ALLOC_POOL_PRIVATE_POOL_H

#include "alloc/pool/pool.h"
#include "alloc/pool/pool_record.h"
#include "base/attr.h"
#include "tarn/graph_pool.h"
#include "tarn/pool.h"

struct tn_private_pool {
    struct tarn_pool_id id;
    int64_t use_count;
    uint64_t segment_count; /* segments taken and not yet given back */
    uint64_t pins;          /* allocations under way that dropped the lock */
    uint64_t reserved;      /* bytes taken and not yet given back */
    uint64_t reserved_peak;
    uint64_t limit;   /* of reserved bytes; TARN_SIZE_UNLIMITED = none */
    int32_t priority; /* of an open pool, when memory is short */
    bool open;        /* in use as a handle and by no graph: its free blocks may be released */
    bool freeable;    /* nobody uses it: its free blocks may be released */
    bool use_on_oom;  /* may serve the default pool as a last resort */
    bool no_split;    /* blocks are allocated whole */
    bool pages_stay;  /* a capture, a checkpoint or a handle's user needs them where they are */
    bool sleeps;      /* its memory may be away: nothing is allocated from it */
    struct tarn_pool_source source; /* of segments; all zero = the device */
    struct tn_asleep *asleep;       /* of a pool that sleeps or has slept (asleep.h), else NULL */
    void (*asleep_gone)(struct tn_asleep *asleep); /* destroys it, with the pool */
    struct tn_pool small;
    struct tn_pool large;
    struct tn_private_pool *next; /* in order of creation */
    struct tn_private_pool *prev;
    struct tn_pool_record *record; /* constant: by it the pool is found */
    char name[TARN_POOL_NAME_MAX]; /* "" = none */
};

/* Whether free blocks of the pool may go back to the device when others need memory. Those of a
 * graph's pool may not, until it is released: the graph knows their addresses. */
static inline bool tn_private_pool_may_shrink(const struct tn_private_pool *pool)
{
    return pool->freeable || pool->open;
}

/* `change` bytes for blocks of the pool of that kind, TN_SMALL or TN_LARGE, were taken from the
 * device, or given back. */
static inline void tn_private_pool_count_reserved(struct tn_private_pool *pool, unsigned kind,
                                                  int64_t change)
{
    pool->reserved += (uint64_t)change;
    if (pool->reserved > pool->reserved_peak) {
        pool->reserved_peak = pool->reserved;
    }
    tn_counter_change(&pool->record->reserved, kind, change);
}

struct tn_pool_route {
    struct tn_private_pool *pool;
    tarn_pool_filter filter;
    void *context;
};

/* All zero is empty. */
struct tn_private_pools {
    struct tn_private_pool *first;
    struct tn_private_pool *last;
    struct tn_pool_records records;      /* of these pools and of earlier ones */
    int64_t find_count;                  /* that new pools begin with, */
    const struct tn_segment_map *by_age; /* and this order */
    struct tn_pool_route *routes;        /* oldest first */
    uint32_t route_count;
    uint32_t route_capacity;
    uint32_t capture_count; /* captures that were announced and have not ended */
};

/* NULL when there is no such pool. Cost: O(1) expected. */
struct tn_private_pool *tn_private_pool_find(const struct tn_private_pools *pools,
                                             struct tarn_pool_id id);

/* Adds one use, creating the pool if it is new. */
enum tarn_status tn_private_pool_acquire(struct tn_private_pools *pools, struct tarn_pool_id id,
                                         struct tarn_error *error) TN_MUST_CHECK;

/* The same for a new pool whose segments come from there. */
enum tarn_status tn_private_pool_create_from(struct tn_private_pools *pools, struct tarn_pool_id id,
                                             const struct tarn_pool_source *source,
                                             struct tarn_error *error) TN_MUST_CHECK;

/* Whether the pool, which may be NULL, does not get its segments from the device. */
static inline bool tn_private_pool_has_source(const struct tn_private_pool *pool)
{
    return pool && pool->source.alloc;
}

/* Fails with TARN_ERR_STATE if the pool, which may be NULL, sleeps. */
enum tarn_status tn_private_pool_check_awake(const struct tn_private_pool *pool,
                                             struct tarn_error *error) TN_MUST_CHECK;

/* Whether the compact policy may move pages of the pool; NULL: a default one. */
static inline bool tn_private_pool_may_move(const struct tn_private_pool *pool)
{
    return !pool || (!pool->pages_stay && !pool->sleeps && !pool->no_split);
}

/* Drops one use; at the last one the pool becomes freeable. */
enum tarn_status tn_private_pool_release(struct tn_private_pools *pools, struct tarn_pool_id id,
                                         struct tarn_error *error) TN_MUST_CHECK;

/* Acquires the pool and routes requests that the filter accepts to it. */
enum tarn_status tn_private_pool_begin(struct tn_private_pools *pools, struct tarn_pool_id id,
                                       tarn_pool_filter filter, void *context,
                                       struct tarn_error *error) TN_MUST_CHECK;

/* Ends the routing; the use that begin added stays. */
enum tarn_status tn_private_pool_end(struct tn_private_pools *pools, struct tarn_pool_id id,
                                     struct tarn_error *error) TN_MUST_CHECK;

/* A capture begins, or ends; TARN_ERR_STATE when none is under way. */
enum tarn_status tn_private_pools_mark_capture(struct tn_private_pools *pools, bool begins,
                                               struct tarn_error *error) TN_MUST_CHECK;

/* The pool that requests on the stream are routed to; NULL: the default pools serve them. */
struct tn_private_pool *tn_private_pool_route(const struct tn_private_pools *pools,
                                              tarn_stream stream);

/* Removes a freeable pool; false if it is still needed: it has segments, is pinned, or requests are
 * routed to it. */
bool tn_private_pool_drop(struct tn_private_pools *pools, struct tn_private_pool *pool);

/* Moves it to the front of the order in which pools are visited: for replaying recorded decisions,
 * where that order is a hash table's. */
void tn_private_pool_put_first(struct tn_private_pools *pools, struct tn_private_pool *pool);

void tn_private_pools_fini(struct tn_private_pools *pools);

#endif
