/* SPDX-License-Identifier: MIT */
/*
 * The caching allocator of one device. It makes PyTorch's decisions, call by call.
 *
 * Memory belongs to the stream it was allocated for and can be reused on that stream as soon as it
 * is freed. A block that other streams use too can be reused once the work they had queued is done
 * (record_stream). Every function may be called from any thread. A failed call changes nothing
 * unless its comment says otherwise. A forked child cannot use its parent's allocators: see
 * tarn/device.h.
 *
 * The settings passed at creation select one of three engines. This header describes the caching
 * one. backend:cudaMallocAsync leaves the decisions to the device's stream-ordered pool, as
 * PyTorch's backend of that name: only allocated, active and reserved bytes are counted, the memory
 * fraction limits allocated bytes, one capture (begin_pool) runs at a time, and walks, observers,
 * callbacks, checkpoints and uses of pools fail with TARN_ERR_NOT_SUPPORTED. no_caching allocates
 * every block on the device and returns it when it is freed; nothing is counted.
 */
#ifndef TARN_ALLOCATOR_H
#define TARN_ALLOCATOR_H

#include "config.h"
#include "device.h"
#include "event.h"
#include "findings.h"
#include "graph_pool.h"
#include "stats.h"
#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;

/* Creates an allocator on the device with these settings (NULL: the defaults). The device is
 * borrowed and must outlive the allocator. Caller owns *allocator_out, free with
 * tarn_allocator_destroy. TARN_ERR_CONFIG for settings that exclude each other or that the device
 * cannot serve. */
TARN_API enum tarn_status tarn_allocator_create(struct tarn_device *device,
                                                const struct tarn_config *config,
                                                struct tarn_allocator **allocator_out,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* Opens the device that `device` names (tarn_device_open; NULL: the first GPU, or the simulated
 * device where there is none) and makes an allocator with the settings in `settings`
 * (tarn_config_parse; "" means the defaults, NULL the environment's settings,
 * tarn_config_from_env). Caller owns *allocator_out, free with tarn_allocator_destroy, which also
 * closes the device. */
TARN_API enum tarn_status tarn_allocator_create_on(const char *device, const char *settings,
                                                   struct tarn_allocator **allocator_out,
                                                   struct tarn_error *error) TARN_MUST_CHECK;

/* The allocator's device; borrowed. */
TARN_API struct tarn_device *tarn_allocator_get_device(struct tarn_allocator *allocator);

/* The device's number, as tarn_device_get_info has it. */
TARN_API int tarn_allocator_get_ordinal(const struct tarn_allocator *allocator);

/* Returns all memory to the device, allocated blocks included, and closes the device if
 * tarn_allocator_create_on opened it. No other call may be in progress or follow. NULL is allowed.
 * In a forked child it does nothing. */
TARN_API void tarn_allocator_destroy(struct tarn_allocator *allocator);

/* Allocates `size` bytes for work on `stream`, which must outlive the memory cached for it
 * (stream.h). *ptr_out is a multiple of 512, or 0 for size 0. Fails with TARN_ERR_OUT_OF_MEMORY
 * after releasing cached memory and retrying as PyTorch does; the error's text is then PyTorch's
 * message, and the observers have been called. */
TARN_API enum tarn_status tarn_allocator_alloc(struct tarn_allocator *allocator, uint64_t size,
                                               tarn_stream stream, tarn_ptr *ptr_out,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* The same at a given address: for a captured graph whose tensors were freed and must come back
 * where the graph expects them (PyTorch's mallocWithAddress). The bytes from `address`, a multiple
 * of 512, must be part of a free block that this request could be served from: of the pool it is
 * routed to, large or small by its size, on this stream; they may be in the middle of it. Asks the
 * device for nothing and gives nothing back. TARN_ERR_NOT_FOUND, and nothing changes, when there is
 * no such block or the settings (max_split_size, no_split) forbid to split it there. The part
 * before the address is allocated for a moment, as PyTorch does: counters and events show it. */
TARN_API enum tarn_status tarn_allocator_alloc_at(struct tarn_allocator *allocator, uint64_t size,
                                                  tarn_stream stream, tarn_ptr address,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Frees what tarn_allocator_alloc returned; 0 does nothing. A pointer that is not currently
 * allocated fails with TARN_ERR_INVALID_POINTER; the text contains its address. */
TARN_API enum tarn_status tarn_allocator_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Declares that the block is also used on another stream: once freed, it is not reused before the
 * work queued on that stream at the time of the free is done. 0 does nothing.
 * TARN_ERR_INVALID_ARGUMENT for a stream of another GPU. */
TARN_API enum tarn_status tarn_allocator_record_stream(struct tarn_allocator *allocator,
                                                       tarn_ptr ptr, tarn_stream stream,
                                                       struct tarn_error *error) TARN_MUST_CHECK;

/* Waits for pending frees and returns every completely free segment to the device. */
TARN_API enum tarn_status tarn_allocator_empty_cache(struct tarn_allocator *allocator,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Returns cached memory to the device until no more than `target` bytes are reserved, or nothing
 * free is left: whole segments and, of expandable ones, no more pages than needed, the largest free
 * blocks first. Waits for pending frees only if that is not enough. During a capture, and where no
 * more than that is reserved, nothing is returned. *reserved_out, which may be NULL: bytes reserved
 * afterwards. Thread-safe. On failure what was returned before stays returned. */
TARN_API enum tarn_status tarn_allocator_trim(struct tarn_allocator *allocator, uint64_t target,
                                              uint64_t *reserved_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Start and size of the segment (for an expandable segment: of its mapped range) that contains an
 * allocated block. Either output may be NULL. */
TARN_API enum tarn_status tarn_allocator_base_allocation(struct tarn_allocator *allocator,
                                                         tarn_ptr ptr, tarn_ptr *base_out,
                                                         uint64_t *size_out,
                                                         struct tarn_error *error) TARN_MUST_CHECK;

/* Size of an allocated block: the requested bytes, rounded up if the allocator rounds.
 * TARN_ERR_INVALID_POINTER as tarn_allocator_free. */
TARN_API enum tarn_status tarn_allocator_block_size(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                    uint64_t *size_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Switches the cache on or off; it starts on. While it is off, allocations come straight from the
 * device, appear in no counter and no walk, and return to the device when freed. Blocks allocated
 * earlier still go to the cache when freed, and requests that name a pool (pool.h) are served from
 * it as before. TARN_ERR_NOT_SUPPORTED for backend:cudaMallocAsync, which has no cache of its own,
 * and for switching on a cache that the settings disable (no_caching). */
TARN_API enum tarn_status tarn_allocator_set_enabled(struct tarn_allocator *allocator, bool enabled,
                                                     struct tarn_error *error) TARN_MUST_CHECK;
TARN_API bool tarn_allocator_is_enabled(struct tarn_allocator *allocator);

/* Limits reserved bytes to this fraction of the device's memory, 0 to 1; 1 means no limit (under
 * backend:cudaMallocAsync, the whole device). Memory that is already reserved stays reserved.
 * TARN_ERR_INVALID_ARGUMENT for any other number, with PyTorch's text. */
TARN_API enum tarn_status
tarn_allocator_set_memory_fraction(struct tarn_allocator *allocator, double fraction,
                                   struct tarn_error *error) TARN_MUST_CHECK;

/* The limit in bytes, TARN_SIZE_UNLIMITED = none; and as a fraction of the device's memory, 1 =
 * none (get_per_process_memory_fraction). */
TARN_API uint64_t tarn_allocator_get_limit(struct tarn_allocator *allocator);
TARN_API double tarn_allocator_get_memory_fraction(struct tarn_allocator *allocator);

/* As torch.cuda.get_allocator_backend: "native" (with or without a cache), "cudaMallocAsync" or
 * "pluggable" (pluggable.h). Static storage. */
TARN_API const char *tarn_allocator_get_backend(struct tarn_allocator *allocator);

/* All counters, read at the same point in time. Fields beyond struct_size are not written. */
TARN_API void tarn_allocator_get_stats(struct tarn_allocator *allocator,
                                       struct tarn_stats *stats_out);
TARN_API void tarn_allocator_reset_peak_stats(struct tarn_allocator *allocator);
TARN_API void tarn_allocator_reset_accumulated_stats(struct tarn_allocator *allocator);

/* Of how many private pools counters are kept: beyond that the oldest of those that are gone are
 * dropped. PyTorch keeps any number. */
#define TARN_POOL_RESERVED_MAX 4096

/* Reserved bytes of one private pool, by the kind of request that they serve. */
struct tarn_pool_reserved {
    struct tarn_pool_id id;
    bool is_gone; /* the pool no longer exists */
    struct tarn_stat by_pool[TARN_STAT_POOLS];
};

/* Reserved bytes of every private pool in order of creation, those of tarn/pool.h included:
 * `reserved_bytes_by_private_pools` in the memory_stats of PyTorch 2.14. Writes as many as the
 * caller has room for, and returns how many there are at that moment; `reserved_out` may be NULL if
 * `room` is 0.
 *
 * Each counter is moved by what moves the pool's part of `reserved_bytes`, and reset by the two
 * functions above. Those of a pool that is gone are kept, as c10/core/CachingDeviceAllocator.h says
 * (`current` is then 0), and go on with the next pool of that id, until resets have set them all to
 * 0 or there are more than TARN_POOL_RESERVED_MAX. Only the caching engine has such pools: of other
 * allocators there are none. Any thread may call it. It needs no host memory and does not fail. */
TARN_API size_t tarn_allocator_get_pool_reserved(struct tarn_allocator *allocator,
                                                 struct tarn_pool_reserved *reserved_out,
                                                 size_t room);

/* Size of the largest free block, or the device's free memory if that is larger and *largest_in_out
 * is 0 on entry: PyTorch's cacheInfo. */
TARN_API enum tarn_status tarn_allocator_cache_info(struct tarn_allocator *allocator,
                                                    uint64_t *largest_in_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Checks every invariant, describes the violations in `findings`, which may be NULL, and returns
 * how many there are. Changes nothing. */
TARN_API uint64_t tarn_allocator_check(struct tarn_allocator *allocator,
                                       struct tarn_findings *findings);

/* One segment and one block as a walk reports them. Each contiguous mapped range of an expandable
 * segment is reported as a segment. */
struct tarn_segment_info {
    uint64_t address;
    uint64_t total_size;
    uint64_t allocated_size;
    uint64_t active_size;
    uint64_t requested_size; /* of active blocks */
    tarn_stream stream;
    struct tarn_pool_id pool;
    uint64_t stack; /* id from the event sink, 0 = none */
    bool is_large;
    bool is_expandable;
    bool was_split;  /* a block was split off its beginning since then, even if both are one again:
                        PyTorch no longer knows the stack */
    uint64_t number; /* 1, 2, ... in the order in which the allocator made its segments, which the
                        ranges of an expandable segment share; 0: of pinned memory */
};

struct tarn_block_info {
    uint64_t address;
    uint64_t size;
    uint64_t requested_size;
    uint64_t stack;
    bool allocated;
    bool active;       /* allocated or waiting for streams */
    void *user;        /* of an allocated block: tarn_allocator_set_user_data (block.h) */
    uint64_t user_tag; /* ... */
};

/* Called in address order with the allocator's lock held: they must not call the allocator. `block`
 * is called for each block of the last reported segment. Either may be NULL. Returning false ends
 * the walk. */
struct tarn_walker {
    void *context;
    bool (*segment)(void *context, const struct tarn_segment_info *segment);
    bool (*block)(void *context, const struct tarn_block_info *block);
};

/* Walks all segments. TARN_ERR_HOST_MEMORY; TARN_ERR_NOT_SUPPORTED under backend:cudaMallocAsync,
 * where the contents of the device's pool are unknown. */
TARN_API enum tarn_status tarn_allocator_walk(struct tarn_allocator *allocator,
                                              const struct tarn_walker *walker) TARN_MUST_CHECK;

/* The same for the segments of one pool; {0, 0} is the default pools. */
TARN_API enum tarn_status
tarn_allocator_walk_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                         const struct tarn_walker *walker) TARN_MUST_CHECK;

/* Expandable segments in order of creation, each with the sums of its mapped ranges and the address
 * of the last: PyTorch's getExpandableSegmentSizes. Those of pools that sleep are left out. Writes
 * as many as the caller has room for, and returns how many there are at that moment; `segments_out`
 * may be NULL if `room` is 0. Any thread may call it. It needs no host memory and does not fail. */
TARN_API size_t tarn_allocator_get_expandable_segments(struct tarn_allocator *allocator,
                                                       struct tarn_segment_info *segments_out,
                                                       size_t room);

/* The settings; the size as in config.h. */
TARN_API enum tarn_status tarn_allocator_get_config_sized(struct tarn_allocator *allocator,
                                                          struct tarn_config *config_out,
                                                          size_t size);

static inline void tarn_allocator_get_config(struct tarn_allocator *allocator,
                                             struct tarn_config *config_out)
{
    (void)tarn_allocator_get_config_sized(allocator, config_out, sizeof *config_out);
}

/* Replaces the settings. New ones apply from the next call on and do not change existing blocks.
 * per_process_memory_fraction only has an effect at creation. Changing the backend or no_caching
 * fails with TARN_ERR_CONFIG. */
TARN_API enum tarn_status tarn_allocator_set_config(struct tarn_allocator *allocator,
                                                    const struct tarn_config *config,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* The facts about a failed request. */
struct tarn_oom {
    uint32_t struct_size;
    int device;
    uint64_t requested;    /* requested bytes */
    uint64_t rounded;      /* bytes of the block */
    uint64_t segment_size; /* that the device could not allocate */
    tarn_stream stream;
    uint64_t limit;       /* TARN_SIZE_UNLIMITED = none */
    uint64_t device_free; /* free bytes of the device */
    uint64_t device_total;
    uint64_t allocated; /* on the device: without what sleeps (sleep.h) */
    uint64_t reserved;
    uint64_t private_free; /* free bytes in private pools that do not sleep */
    const char *processes; /* "" or one sentence per process that uses the device */
    bool rejected;         /* refused because of the limit, without a device call */
};

/* Called on the thread whose allocation failed, before the call returns and with no lock held, so
 * it may use the allocator. Requests made by an observer do not call observers. At most
 * TARN_OBSERVERS_MAX, then TARN_ERR_LIMIT; tarn/pressure.h removes them. */
enum {
    TARN_OBSERVERS_MAX = 8
};

typedef void (*tarn_oom_observer)(void *context, const struct tarn_oom *oom);

/* Adds an observer, with the `context` it is called with. TARN_ERR_INVALID_ARGUMENT for NULL. */
TARN_API enum tarn_status tarn_allocator_add_oom_observer(struct tarn_allocator *allocator,
                                                          tarn_oom_observer observer,
                                                          void *context) TARN_MUST_CHECK;

/* Called with no lock held when no free block fits, before a device allocation. It may free blocks
 * of this allocator; if it returns true, the search is repeated. It must not allocate from this
 * allocator: a request that no free block can serve fails with TARN_ERR_STATE. */
typedef bool (*tarn_memory_callback)(void *context, struct tarn_allocator *allocator, uint64_t size,
                                     tarn_stream stream);

/* Adds one; TARN_ERR_INVALID_ARGUMENT for NULL, TARN_ERR_LIMIT when there are too many.
 * tarn/pressure.h removes them, and has callbacks that are not called at every miss. */
TARN_API enum tarn_status tarn_allocator_add_memory_callback(struct tarn_allocator *allocator,
                                                             tarn_memory_callback callback,
                                                             void *context) TARN_MUST_CHECK;

enum {
    TARN_SINKS_MAX = 4
};

/* Adds an event sink, enabled; the struct is copied. At most TARN_SINKS_MAX, then TARN_ERR_LIMIT.
 * Only one sink may capture stacks: TARN_ERR_STATE for a second. TARN_ERR_NOT_SUPPORTED under
 * backend:cudaMallocAsync; no_caching reports no events. */
TARN_API enum tarn_status tarn_allocator_add_sink(struct tarn_allocator *allocator,
                                                  const struct tarn_sink *sink,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Enables or disables the sinks with that context and sets their level. A disabled sink costs
 * nothing. Stacks stored with blocks stay until the blocks are freed. TARN_ERR_NOT_FOUND when there
 * is no such sink. */
TARN_API enum tarn_status tarn_allocator_switch_sink(struct tarn_allocator *allocator,
                                                     const void *context, bool on,
                                                     enum tarn_context_level level,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Removes the sinks with that context. The stacks stored with blocks and segments are released
 * first; after that none of their functions is called. Other threads may use the allocator
 * meanwhile: calls that have captured a stack end first. TARN_ERR_NOT_READY if one is still in
 * progress after about a second, as one that waits for the device or one whose callback this is:
 * then the sinks are switched off but stay. TARN_ERR_NOT_FOUND when there is no such sink. */
TARN_API enum tarn_status tarn_allocator_remove_sink(struct tarn_allocator *allocator,
                                                     const void *context,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Sends an ANNOTATE event for an allocated block with that text as its user metadata (NULL: "")
 * and, from TARN_CONTEXT_ALLOC on, the stack of this call. TARN_ERR_INVALID_POINTER where nothing
 * is allocated at `ptr`. */
TARN_API enum tarn_status tarn_allocator_annotate(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                  const char *text,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
