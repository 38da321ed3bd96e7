/* SPDX-License-Identifier: MIT */
/*
 * Pinned (page-locked) host memory, cached: PyTorch's caching host allocator, with the settings
 * whose names begin with pinned_. The device copies from and to such memory without a detour, and
 * without waiting for the host.
 *
 * Sizes are rounded up to a power of two; a block is never split. Freed memory is kept for requests
 * of the same rounded size: at once when no stream used it, else when the work queued on those
 * streams at the time of the free is done. Memory that a captured graph uses is kept apart until
 * tarn_pinned_forget_graphs.
 *
 * Thread-safe. A failed call changes nothing. Not for forked children: see tarn/device.h.
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

/* Pinned memory made through that device, usable by all devices of its backend. Of the settings
 * (NULL: the defaults) only those of pinned memory count. The device is borrowed and must outlive
 * it. Caller owns *pinned_out, free with tarn_pinned_destroy. */
TARN_API enum tarn_status tarn_pinned_create(struct tarn_device *device,
                                             const struct tarn_config *config,
                                             struct tarn_pinned **pinned_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* Gives all memory back, blocks in use included. Nothing may use it any more. NULL is allowed. */
TARN_API void tarn_pinned_destroy(struct tarn_pinned *pinned);

/* At least `size` bytes, uninitialised; NULL for size 0. When the driver has no more, what is
 * cached is given back and it is asked once more; then TARN_ERR_OUT_OF_MEMORY. */
TARN_API enum tarn_status tarn_pinned_alloc(struct tarn_pinned *pinned, uint64_t size,
                                            void **memory_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* Frees what tarn_pinned_alloc returned; NULL does nothing. TARN_ERR_INVALID_POINTER for anything
 * else. With pinned_free_catch_all a failure of the device is no failure of the free: the block is
 * then not used again. */
TARN_API enum tarn_status tarn_pinned_free(struct tarn_pinned *pinned, void *memory,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* A stream of `device` (NULL: the one it was created with) uses the block that holds `memory`,
 * which may point inside it. Work queued after the free is not waited for. A stream under capture
 * makes the block a graph's. TARN_ERR_INVALID_POINTER where nothing is handed out. */
TARN_API enum tarn_status tarn_pinned_record_stream(struct tarn_pinned *pinned, void *memory,
                                                    struct tarn_device *device, tarn_stream stream,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* No graph captured so far runs again: freed blocks that they used are cached like others. */
TARN_API void tarn_pinned_forget_graphs(struct tarn_pinned *pinned);

/* Gives cached memory back to the driver, but for the reserved segment
 * (pinned_reserve_segment_size_mb), which stays. */
TARN_API enum tarn_status tarn_pinned_empty_cache(struct tarn_pinned *pinned,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Microseconds that calls took. */
struct tarn_duration {
    int64_t total;
    int64_t max;
    int64_t min;
    int64_t count;
};

/* The counters of torch.cuda.host_memory_stats. Active blocks are handed out or wait for streams.
 */
struct tarn_pinned_stats {
    uint32_t struct_size;         /* in: sizeof(struct tarn_pinned_stats) */
    struct tarn_stat allocations; /* blocks, cached ones included */
    struct tarn_stat active_requests;
    struct tarn_stat allocated_bytes; /* of all blocks */
    struct tarn_stat active_bytes;
    int64_t num_host_alloc; /* times the driver was asked for memory, and given it back */
    int64_t num_host_free;
    struct tarn_duration host_alloc_time;
    struct tarn_duration host_free_time;
    int64_t graph_blocks; /* freed, and kept for graphs */
    int64_t lost_blocks;  /* freed while the device failed (pinned_free_catch_all) */
};

/* Shows them under PyTorch's keys: flat and sorted as torch.cuda.host_memory_stats()
 * ("active_bytes.current"), or level by level as host_memory_stats_as_nested_dict(). `avg` of a
 * duration is total / count, 0 without any. What PyTorch does not have is left out. */
TARN_API void tarn_pinned_stats_walk(const struct tarn_pinned_stats *stats,
                                     void (*visit)(void *context, const char *key, int64_t value),
                                     void *context);
TARN_API void tarn_pinned_stats_walk_nested(const struct tarn_pinned_stats *stats,
                                            const struct tarn_stats_visitor *visitor);

/* All from one moment. Fields beyond struct_size are left out. */
TARN_API void tarn_pinned_get_stats(struct tarn_pinned *pinned,
                                    struct tarn_pinned_stats *stats_out);
TARN_API void tarn_pinned_reset_peak_stats(struct tarn_pinned *pinned);
TARN_API void tarn_pinned_reset_accumulated_stats(struct tarn_pinned *pinned);

/* Sends events to that receiver from now on (NULL: to none), PyTorch's host traces: ALLOC,
 * FREE_REQUESTED and FREE_COMPLETED of blocks in bytes asked for, SEGMENT_ALLOC and SEGMENT_FREE of
 * what the driver gave and got, all on stream 0. The one before forgets the stacks that blocks keep
 * of it. While no call of `pinned` is under way, and before the receiver goes, which must not be
 * that of an allocator. Never fails. */
TARN_API void tarn_pinned_set_sink(struct tarn_pinned *pinned, const struct tarn_sink *sink);

/* Shows every block as a segment with one block in it, in address order, as tarn_allocator_walk
 * does, under the lock. Blocks that are freed and wait, or are kept for graphs, are active. */
TARN_API void tarn_pinned_walk(struct tarn_pinned *pinned, const struct tarn_walker *walker);

/* Checks every invariant; returns how many are violated and describes them. */
TARN_API uint64_t tarn_pinned_check(struct tarn_pinned *pinned, struct tarn_findings *findings);

#ifdef __cplusplus
}
#endif

#endif
