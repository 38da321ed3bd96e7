/* SPDX-License-Identifier: MIT */
/*
 * Pinned (page-locked) host memory, cached: PyTorch's caching host allocator, with the settings
 * whose names begin with pinned_. The device copies to and from such memory directly and
 * asynchronously.
 *
 * Sizes are rounded up to a power of two; blocks are never split. A freed block serves requests of
 * the same rounded size: immediately if no stream used it, otherwise once the work queued on those
 * streams at the time of the free is done. Memory that a captured graph uses is set aside until
 * tarn_pinned_forget_graphs.
 *
 * Thread-safe. A failed call changes nothing. A forked child cannot use it: see tarn/device.h.
 */
#ifndef TARN_PINNED_H
#define TARN_PINNED_H

#include "allocator.h"
#include "config.h"
#include "device.h"
#include "findings.h"
#include "stats.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_pinned;

/* Creates an allocator of pinned memory through that device, usable by all devices of its backend.
 * Of the settings (NULL: the defaults) only the pinned_ ones apply. The device is borrowed and must
 * outlive it. Caller owns *pinned_out, free with tarn_pinned_destroy. */
TARN_API enum tarn_status tarn_pinned_create(struct tarn_device *device,
                                             const struct tarn_config *config,
                                             struct tarn_pinned **pinned_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Returns all memory, allocated blocks included. No other call may be in progress or follow. NULL
 * is allowed. */
TARN_API void tarn_pinned_destroy(struct tarn_pinned *pinned);

/* At least `size` bytes, uninitialised; NULL for size 0. When the driver runs out, the cache is
 * flushed and the request retried once; then TARN_ERR_OUT_OF_MEMORY. */
TARN_API enum tarn_status tarn_pinned_alloc(struct tarn_pinned *pinned, uint64_t size,
                                            void **memory_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Frees what tarn_pinned_alloc returned; NULL does nothing. TARN_ERR_INVALID_POINTER for anything
 * else. With pinned_free_catch_all a device failure does not fail the free: the block is leaked
 * instead. */
TARN_API enum tarn_status tarn_pinned_free(struct tarn_pinned *pinned, void *memory,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* Declares that a stream of `device` (NULL: the one passed at creation) uses the block that
 * contains `memory`, which may point inside it. Work queued after the free is not waited for. If
 * the stream is being captured, the block belongs to a graph from then on. TARN_ERR_INVALID_POINTER
 * where nothing is allocated. */
TARN_API enum tarn_status tarn_pinned_record_stream(struct tarn_pinned *pinned, void *memory,
                                                    struct tarn_device *device, tarn_stream stream,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Declares that no graph captured so far will run again: freed blocks that they used return to the
 * cache. */
TARN_API void tarn_pinned_forget_graphs(struct tarn_pinned *pinned);

/* Returns cached memory to the driver, except the reserved segment
 * (pinned_reserve_segment_size_mb). */
TARN_API enum tarn_status tarn_pinned_empty_cache(struct tarn_pinned *pinned,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Durations of calls in microseconds. */
struct tarn_duration {
    int64_t total;
    int64_t max;
    int64_t min;
    int64_t count;
};

/* The counters of torch.cuda.host_memory_stats. Active blocks are allocated or waiting for streams.
 */
struct tarn_pinned_stats {
    uint32_t struct_size;         /* in: sizeof(struct tarn_pinned_stats) */
    struct tarn_stat allocations; /* blocks, cached ones included */
    struct tarn_stat active_requests;
    struct tarn_stat allocated_bytes; /* of all blocks */
    struct tarn_stat active_bytes;
    int64_t num_host_alloc; /* calls that allocated and freed memory of the driver */
    int64_t num_host_free;
    struct tarn_duration host_alloc_time;
    struct tarn_duration host_free_time;
    int64_t graph_blocks; /* freed but set aside for graphs */
    int64_t lost_blocks;  /* leaked by a device failure (pinned_free_catch_all) */
};

/* Visit the counters under PyTorch's keys: flat and sorted as torch.cuda.host_memory_stats()
 * ("active_bytes.current"), or nested as host_memory_stats_as_nested_dict(). `avg` of a duration is
 * total / count, 0 for no calls. Counters that PyTorch does not have are omitted. */
TARN_API void tarn_pinned_stats_walk(const struct tarn_pinned_stats *stats,
                                     void (*visit)(void *context, const char *key, int64_t value),
                                     void *context);
TARN_API void tarn_pinned_stats_walk_nested(const struct tarn_pinned_stats *stats,
                                            const struct tarn_stats_visitor *visitor);

/* All counters, read at the same point in time. Fields beyond struct_size are not written. */
TARN_API void tarn_pinned_get_stats(struct tarn_pinned *pinned,
                                    struct tarn_pinned_stats *stats_out);
TARN_API void tarn_pinned_reset_peak_stats(struct tarn_pinned *pinned);
TARN_API void tarn_pinned_reset_accumulated_stats(struct tarn_pinned *pinned);

/* Replaces the event sink (NULL: none). Events are PyTorch's host traces: ALLOC, FREE_REQUESTED and
 * FREE_COMPLETED of blocks with requested bytes, SEGMENT_ALLOC and SEGMENT_FREE of driver
 * allocations, all on stream 0. Stacks that blocks hold from the previous sink are released. Call
 * it while no other call on `pinned` is in progress and before the sink's context is destroyed; an
 * allocator's sink cannot be shared. Never fails. */
TARN_API void tarn_pinned_set_sink(struct tarn_pinned *pinned, const struct tarn_sink *sink);

/* Reports every block as a segment with one block in it, in address order and under the lock, like
 * tarn_allocator_walk. Freed blocks that wait for streams or are set aside for graphs are
 * active. */
TARN_API void tarn_pinned_walk(struct tarn_pinned *pinned, const struct tarn_walker *walker);

/* Checks every invariant; returns how many are violated and describes them. */
TARN_API uint64_t tarn_pinned_check(struct tarn_pinned *pinned, struct tarn_findings *findings);

#ifdef __cplusplus
}
#endif

#endif
