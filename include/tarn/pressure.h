/* SPDX-License-Identifier: MIT */
/*
 * Memory pressure: limits in bytes, and callbacks that make room when the device or a limit says
 * no. Every function may be called from any thread. They need the caching engine; others fail with
 * TARN_ERR_NOT_SUPPORTED.
 */
#ifndef TARN_PRESSURE_H
#define TARN_PRESSURE_H

#include "allocator.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Limits reserved bytes; TARN_SIZE_UNLIMITED = none. As tarn_allocator_set_memory_fraction, in
 * bytes. */
TARN_API enum tarn_status tarn_allocator_set_limit(struct tarn_allocator *allocator, uint64_t bytes,
                                                   struct tarn_error *error) TARN_MUST_CHECK;

/* Reserved bytes above which callbacks are asked before the device is; TARN_SIZE_UNLIMITED (the
 * default) = none. The device may still be asked after that: this limit stops nothing, except tries
 * with TARN_ALLOC_WITHIN_BUDGET. */
TARN_API enum tarn_status tarn_allocator_set_soft_limit(struct tarn_allocator *allocator,
                                                        uint64_t bytes,
                                                        struct tarn_error *error) TARN_MUST_CHECK;
TARN_API uint64_t tarn_allocator_get_soft_limit(struct tarn_allocator *allocator);

/* Why a callback is called. */
struct tarn_pressure {
    uint32_t struct_size;
    bool is_soft;                     /* the soft limit asks; false: the request would fail */
    struct tarn_allocator *allocator; /* that it is about */
    tarn_stream stream;               /* of the request */
    struct tarn_pool_id pool;         /* of the request; {0, 0} is the default pool */
    uint64_t bytes; /* that are missing: of the segment that the device or the limit refused, or
                       above the soft limit */
};

/* Frees blocks of the allocator (tarn_allocator_free) and returns how many bytes, 0 = nothing could
 * be freed. It is called on the thread of the request, with no lock held, after everything cached
 * has been given back, never at a mere miss of the cache. The request is then tried again; this
 * repeats while a callback returns more than 0, unless TARN_PRESSURE_ROUNDS times in a row not one
 * block was freed, or a thousand times in a row no less was allocated afterwards, as when a
 * callback only frees what it allocates itself. For the soft limit it ends when enough was freed. A
 * request that it makes itself calls no callback. What it frees stays with a pool whose priority is
 * higher than the request's (pool.h): free blocks that the request can use. */
typedef uint64_t (*tarn_pressure_callback)(void *context, const struct tarn_pressure *pressure);

enum {
    TARN_PRESSURE_ROUNDS = 8
};

/* Adds a callback; at most TARN_OBSERVERS_MAX, then TARN_ERR_LIMIT. TARN_ERR_INVALID_ARGUMENT for
 * NULL. They are called in this order, until enough has been freed. */
TARN_API enum tarn_status tarn_allocator_add_pressure_callback(struct tarn_allocator *allocator,
                                                               tarn_pressure_callback callback,
                                                               void *context) TARN_MUST_CHECK;

/* Remove what was added with the same function and context: the most recent one. No new call
 * begins afterwards; one that has begun on another thread may still be running, so keep the context
 * until the requests in progress have returned. TARN_ERR_NOT_FOUND when there is none. */
TARN_API enum tarn_status tarn_allocator_remove_pressure_callback(struct tarn_allocator *allocator,
                                                                  tarn_pressure_callback callback,
                                                                  void *context) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_allocator_remove_oom_observer(struct tarn_allocator *allocator,
                                                             tarn_oom_observer observer,
                                                             void *context) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_allocator_remove_memory_callback(struct tarn_allocator *allocator,
                                                                tarn_memory_callback callback,
                                                                void *context) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
