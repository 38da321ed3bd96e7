/* SPDX-License-Identifier: MIT */
/*
 * Private pools: memory kept apart for captured graphs or by a user's choice. While routing to a
 * pool is on (begin ... end), requests that its filter accepts are served from the pool; the latest
 * begin is asked first. A pool lives while it is used (use count) and until its last segment went
 * back.
 *
 * Owns: pools and the list of routes. Guarded by the heap's lock; filters are called under it and
 * must not call the allocator.
 */
#ifndef TN_ALLOC_POOL_PRIVATE_POOL_H
#define TN_ALLOC_POOL_PRIVATE_POOL_H

#include "alloc/pool/pool.h"
#include "base/attr.h"
#include "tarn/graph_pool.h"

struct tn_private_pool {
    struct tarn_pool_id id;
    int64_t use_count;
    uint64_t segment_count; /* segments taken and not yet given back */
    uint64_t pins;          /* allocations under way that dropped the lock */
    bool freeable;          /* nobody uses it: its free blocks may go back */
    bool use_on_oom;        /* may serve the default pool as a last resort */
    bool no_split;          /* blocks are allocated whole */
    struct tn_pool small;
    struct tn_pool large;
    struct tn_private_pool *next; /* in order of creation */
};

struct tn_pool_route {
    struct tarn_pool_id id;
    tarn_pool_filter filter;
    void *context;
};

/* All zero is empty. */
struct tn_private_pools {
    struct tn_private_pool *first;
    struct tn_pool_route *routes; /* oldest first */
    uint32_t route_count;
    uint32_t route_capacity;
};

/* NULL when there is no such pool. */
struct tn_private_pool *tn_private_pool_find(const struct tn_private_pools *pools,
                                             struct tarn_pool_id id);

/* Adds one use, making the pool when it is new. */
enum tarn_status tn_private_pool_acquire(struct tn_private_pools *pools, struct tarn_pool_id id,
                                         struct tarn_error *error) TN_MUST_CHECK;

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

/* The pool that requests on the stream are routed to; NULL: the default pools serve them. */
struct tn_private_pool *tn_private_pool_route(const struct tn_private_pools *pools,
                                              tarn_stream stream);

/* Removes a freeable pool that has no segment left; false if it is still needed, which it also is
 * while requests are routed to it. */
bool tn_private_pool_drop(struct tn_private_pools *pools, struct tn_private_pool *pool);

/* Makes it the first in the order in which pools are gone through: for replaying recorded
 * decisions, where that order is a hash table's. */
void tn_private_pool_put_first(struct tn_private_pools *pools, struct tn_private_pool *pool);

void tn_private_pools_fini(struct tn_private_pools *pools);

#endif
