/* SPDX-License-Identifier: MIT */
/*
 * Pools as handles: memory kept apart for a tenant, a model or a kind of data, with a limit and
 * counters of its own. A request names its pool, so nothing is routed and no capture is assumed:
 * requests of other pools and streams go on as before. tarn/graph_pool.h has pools that requests
 * are routed to by stream, for captured graphs.
 *
 * A block of a pool is freed with tarn_allocator_free, recorded with tarn_allocator_record_stream
 * and so on. Free memory of a pool serves requests of that pool only; it goes back to the device
 * when the pool or the cache is emptied, or when memory is short. Once requests have been routed to
 * the pool (tarn_allocator_begin_pool with its id) it stays until the pool is destroyed, because a
 * graph may know the addresses.
 *
 * Under policy:compact whole free pages of 2 MiB move between a pool and the rest of the allocator,
 * as docs/compact.md says: they serve requests of pools with the same or a higher priority, and
 * their addresses get other pages when the pool needs them again. Pages with a block in them never
 * move.
 *
 * Every function may be called from any thread, except that no other call on a pool may be in
 * progress when it is destroyed, or follow. They need the caching engine; others fail with
 * TARN_ERR_NOT_SUPPORTED.
 */
#ifndef TARN_POOL_H
#define TARN_POOL_H

#include "graph_pool.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;
struct tarn_pool;

enum {
    TARN_POOL_NAME_MAX = 64 /* bytes of a name with its NUL */
};

/* Zero bytes after struct_size are the defaults. */
struct tarn_pool_options {
    uint32_t struct_size; /* sizeof(struct tarn_pool_options) */
    int32_t priority;     /* cached memory of pools goes back to the device in ascending order, for
                             requests of pools with the same or a higher priority; the default pools
                             have 0 */
    const char *name;     /* copied; NULL = "". The user metadata of the pool's events where the
                             thread has none: histories, snapshots and the page show it */
    uint64_t limit;       /* bytes that the pool may reserve; 0 = no limit */
    bool no_split;        /* blocks are never split: they serve requests whole */
    bool use_on_oom;      /* as tarn_allocator_set_pool_use_on_oom */
    const struct tarn_pool_source *source; /* of segments, copied; NULL = the device */
    bool pages_stay; /* under policy:compact pages of the pool do not move, even free ones: an
                        address keeps its physical memory until that goes back to the device, for
                        programs that have registered it elsewhere */
};

/* Makes a pool; `options` may be NULL. Caller owns *pool_out, free with tarn_pool_destroy before
 * the allocator is destroyed. TARN_ERR_INVALID_ARGUMENT for an incomplete source,
 * TARN_ERR_LIMIT for a name that is too long. */
TARN_API enum tarn_status tarn_pool_create(struct tarn_allocator *allocator,
                                           const struct tarn_pool_options *options,
                                           struct tarn_pool **pool_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Gives the pool's free memory back, after waiting for pending frees. Blocks that are still
 * allocated stay valid; their memory goes back once they are freed and the cache is emptied or
 * memory is short. NULL is allowed. */
TARN_API void tarn_pool_destroy(struct tarn_pool *pool);

/* As tarn_allocator_alloc, from the pool. Beyond the pool's limit its free memory is given back
 * first, or under policy:compact moved to where it is needed; then TARN_ERR_OUT_OF_MEMORY. */
TARN_API enum tarn_status tarn_pool_alloc(struct tarn_pool *pool, uint64_t size, tarn_stream stream,
                                          tarn_ptr *ptr_out,
                                          struct tarn_error *error) TARN_MUST_CHECK;

/* As tarn_allocator_trim, for the bytes that the pool reserves. */
TARN_API enum tarn_status tarn_pool_trim(struct tarn_pool *pool, uint64_t target,
                                         uint64_t *reserved_out,
                                         struct tarn_error *error) TARN_MUST_CHECK;

/* Replaces the pool's limit; TARN_SIZE_UNLIMITED or 0 = none. What is reserved stays reserved. */
TARN_API enum tarn_status tarn_pool_set_limit(struct tarn_pool *pool, uint64_t limit,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* What a pool has, at one moment. */
struct tarn_pool_stats {
    uint32_t struct_size; /* in: sizeof(struct tarn_pool_stats) */
    int32_t priority;
    uint64_t limit;    /* TARN_SIZE_UNLIMITED = none */
    uint64_t reserved; /* bytes taken from the device */
    uint64_t reserved_peak;
    uint64_t allocated; /* bytes of allocated blocks */
    uint64_t active;    /* and of blocks that wait for streams */
    uint64_t requested; /* requested bytes of active blocks */
    uint64_t blocks;    /* allocated blocks */
    uint64_t segments;
};

/* Fields beyond struct_size are not written; TARN_ERR_INVALID_ARGUMENT if that is not set. Costs a
 * walk over the allocator's segments and the pool's blocks. */
TARN_API enum tarn_status tarn_pool_get_stats(struct tarn_pool *pool,
                                              struct tarn_pool_stats *stats_out) TARN_MUST_CHECK;

/* The pool's allocator; its id in walks, events and snapshots; its name. Borrowed until the pool is
 * destroyed. */
TARN_API struct tarn_allocator *tarn_pool_get_allocator(const struct tarn_pool *pool);
TARN_API struct tarn_pool_id tarn_pool_get_id(const struct tarn_pool *pool);
TARN_API const char *tarn_pool_get_name(const struct tarn_pool *pool);

#ifdef __cplusplus
}
#endif

#endif
