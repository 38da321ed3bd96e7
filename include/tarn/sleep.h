/* SPDX-License-Identifier: MIT */
/*
 * Sleep and wake: the memory of a private pool goes back to the device for a while, and returns at
 * the same addresses. A pool is the tag: what was allocated while requests were routed to it
 * (tarn/graph_pool.h) sleeps and wakes together, captured graphs that use the pool included.
 *
 * Asleep, its allocations stay allocated and its addresses reserved, but nothing is behind them:
 * until the pool wakes no work may use them. Allocating from the pool fails with TARN_ERR_STATE;
 * freeing works. Reserved bytes do not count what sleeps, and walks and snapshots do not show it;
 * allocated bytes count it. Receivers of events get SEGMENT_UNMAP and SEGMENT_MAP.
 *
 * Only expandable segments can sleep (policy:compact, or expandable_segments:True).
 */
#ifndef TARN_SLEEP_H
#define TARN_SLEEP_H

#include "graph_pool.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;

struct tarn_sleep_options {
    uint32_t struct_size; /* sizeof(struct tarn_sleep_options) */
    bool discard;         /* contents are undefined after waking; false: allocated blocks keep
                             theirs, in pinned memory of the host meanwhile */
    bool keep_host;       /* that memory stays with the pool when it wakes, for the next time:
                             pinning takes longer than copying. Goes with the pool, or when the
                             pool wakes from a sleep without this option */
};

/* Waits for all work on the device, copies the contents of the pool's allocated blocks to the host,
 * and gives the pool's memory back. `options` NULL: contents are kept, host memory is not. The
 * allocator's lock is not held while it waits and copies. Thread-safe. Fails with
 *   TARN_ERR_NOT_FOUND      there is no such pool
 *   TARN_ERR_STATE          the pool is asleep or about to be, memory of it was shared with other
 *                           processes, or a graph is being captured
 *   TARN_ERR_NOT_SUPPORTED  a segment of the pool is not expandable, or `id` is {0, 0}
 *   TARN_ERR_OUT_OF_MEMORY, TARN_ERR_HOST_MEMORY, TARN_ERR_DEVICE
 * and the pool is as before; unless the device, after refusing to unmap a page, also refuses to map
 * others again: then the pool is asleep, with its contents on the host if they are kept. */
TARN_API enum tarn_status tarn_allocator_sleep(struct tarn_allocator *allocator,
                                               struct tarn_pool_id id,
                                               const struct tarn_sleep_options *options,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* Maps new memory at the pool's addresses and copies what was kept back; the copies are done when
 * it returns. If the device or the limit has no room, cached memory of other pools is returned to
 * the device, no more than needed. Thread-safe. Fails with TARN_ERR_NOT_FOUND, TARN_ERR_STATE when
 * the pool is not asleep or a graph is being captured, TARN_ERR_OUT_OF_MEMORY, TARN_ERR_HOST_MEMORY
 * or TARN_ERR_DEVICE: then the pool is still asleep, and waking it can be tried again. */
TARN_API enum tarn_status tarn_allocator_wake(struct tarn_allocator *allocator,
                                              struct tarn_pool_id id,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Whether the pool is asleep, or on its way there or back; false if it does not exist. */
TARN_API bool tarn_allocator_is_asleep(struct tarn_allocator *allocator, struct tarn_pool_id id);

struct tarn_sleep_stats {
    uint32_t struct_size; /* in: sizeof(struct tarn_sleep_stats) */
    uint64_t pools;       /* now: asleep */
    uint64_t bytes;       /* now: of the device, given back */
    uint64_t host_bytes;  /* now: pinned memory for contents */
    uint64_t sleeps;      /* since the allocator was created: calls that succeeded */
    uint64_t sleep_ns;    /* their time on the host, in nanoseconds, waiting for work included */
    uint64_t wakes;
    uint64_t wake_ns;
};

/* Fields beyond struct_size are not written. Thread-safe. */
TARN_API void tarn_allocator_get_sleep_stats(struct tarn_allocator *allocator,
                                             struct tarn_sleep_stats *stats_out);

#ifdef __cplusplus
}
#endif

#endif
