/* SPDX-License-Identifier: MIT */
/*
 * The caching allocator of one device: PyTorch's decisions, call by call.
 *
 * Memory belongs to the stream it was allocated for and is reused on that stream at once when it is
 * freed; a block that other streams use as well is reused when the work they had queued is done
 * (record_stream). Every function may be called from any thread. A failed call changes nothing
 * unless its comment says otherwise. A child that is forked afterwards cannot use the allocator:
 * see tarn/device.h.
 *
 * The settings choose among three engines when the allocator is made. The caching one is described
 * here. backend:cudaMallocAsync leaves the decisions to the device's stream-ordered pool, as
 * PyTorch's backend of that name: only allocated, active and reserved bytes are counted, the
 * memory fraction limits the bytes handed out, one capture (begin_pool) runs at a time, and walks,
 * observers, callbacks, checkpoints and uses of pools fail with TARN_ERR_NOT_SUPPORTED. no_caching
 * takes every block from the device and gives it back when it is freed; nothing is counted.
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

/* An allocator on the device with these settings (NULL: the defaults). The device is borrowed and
 * must outlive it. Caller owns *allocator_out, free with tarn_allocator_destroy. */
TARN_API enum tarn_status tarn_allocator_create(struct tarn_device *device,
                                                const struct tarn_config *config,
                                                struct tarn_allocator **allocator_out,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* Opens the device that `device` names (tarn_device_open; NULL: the first GPU, or the simulated
 * device where there is none) and makes an allocator with the settings in `settings`
 * (tarn_config_parse; "" is the defaults, NULL those of the environment, tarn_config_from_env).
 * Caller owns *allocator_out, free with tarn_allocator_destroy, which closes the device as well. */
TARN_API enum tarn_status tarn_open(const char *device, const char *settings,
                                    struct tarn_allocator **allocator_out,
                                    struct tarn_error *error) TARN_MUST_CHECK;

/* The device that the allocator is on; borrowed. */
TARN_API struct tarn_device *tarn_allocator_device(struct tarn_allocator *allocator);

/* Gives all memory back to the device, allocated blocks included, and closes the device if
 * tarn_open opened it. Nothing may use it any more. NULL is allowed. In a forked child it gives
 * nothing back and closes nothing. */
TARN_API void tarn_allocator_destroy(struct tarn_allocator *allocator);

/* Allocates `size` bytes for work on `stream`, which must outlive what is cached for it (stream.h).
 * *ptr_out is a multiple of 512; for size 0 it is 0.
 * Fails with TARN_ERR_OUT_OF_MEMORY, after giving cached memory back and trying again as PyTorch
 * does; the error's text is then PyTorch's message, and the observers were called. */
TARN_API enum tarn_status tarn_allocator_alloc(struct tarn_allocator *allocator, uint64_t size,
                                               tarn_stream stream, tarn_ptr *ptr_out,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* Frees what tarn_allocator_alloc returned; 0 does nothing. A pointer that is not handed out just
 * now (never, or freed already) fails with TARN_ERR_INVALID_POINTER and its address in the text. */
TARN_API enum tarn_status tarn_allocator_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* An allocation with the place where its record is kept, for callers that can keep both. The place
 * is only a hint: it is looked at first, and a wrong one costs what a lookup costs. */
struct tarn_handle {
    tarn_ptr ptr;
    uint64_t place; /* 0 = not known */
};

/* As tarn_allocator_alloc and tarn_allocator_free, with a handle: freeing it needs no search for
 * the pointer. Either kind of free takes what either kind of allocation returned, as
 * {ptr, 0}; errors are the same. */
TARN_API enum tarn_status tarn_allocator_alloc_handle(struct tarn_allocator *allocator,
                                                      uint64_t size, tarn_stream stream,
                                                      struct tarn_handle *handle_out,
                                                      struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_allocator_free_handle(struct tarn_allocator *allocator,
                                                     struct tarn_handle handle,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* The block is used on another stream as well: after its free it is not reused before the work
 * queued on that stream at the time of the free is done. 0 does nothing.
 * TARN_ERR_INVALID_ARGUMENT for a stream of another GPU. */
TARN_API enum tarn_status tarn_allocator_record_stream(struct tarn_allocator *allocator,
                                                       tarn_ptr ptr, tarn_stream stream,
                                                       struct tarn_error *error) TARN_MUST_CHECK;

/* Waits for pending frees and gives every segment that is wholly free back to the device. */
TARN_API enum tarn_status tarn_allocator_empty_cache(struct tarn_allocator *allocator,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Start and size of the segment (of a growing segment: of its range) that holds an allocated block.
 * Either output may be NULL. */
TARN_API enum tarn_status tarn_allocator_base_allocation(struct tarn_allocator *allocator,
                                                         tarn_ptr ptr, tarn_ptr *base_out,
                                                         uint64_t *size_out,
                                                         struct tarn_error *error) TARN_MUST_CHECK;

/* While the cache is switched off, allocations take plain memory of the device, not counted and in
 * no walk, and freeing it gives it back at once; what was allocated before goes to the cache when
 * it is freed, as ever. On at the beginning. TARN_ERR_NOT_SUPPORTED for backend:cudaMallocAsync,
 * which has no cache of its own, and for switching on a cache that the settings leave out
 * (no_caching). */
TARN_API enum tarn_status tarn_allocator_set_enabled(struct tarn_allocator *allocator, bool enabled,
                                                     struct tarn_error *error) TARN_MUST_CHECK;
TARN_API bool tarn_allocator_is_enabled(struct tarn_allocator *allocator);

/* Reserved bytes may not exceed this share of the device's memory, 0 to 1; 1 is no limit (under
 * backend:cudaMallocAsync it is the whole device). What is reserved stays.
 * TARN_ERR_INVALID_ARGUMENT for any other number, with PyTorch's text. */
TARN_API enum tarn_status
tarn_allocator_set_memory_fraction(struct tarn_allocator *allocator, double fraction,
                                   struct tarn_error *error) TARN_MUST_CHECK;

/* The limit in bytes, TARN_SIZE_UNLIMITED = none; and the share of the device's memory that it is,
 * 1 where there is none (get_per_process_memory_fraction). */
TARN_API uint64_t tarn_allocator_get_limit(struct tarn_allocator *allocator);
TARN_API double tarn_allocator_get_memory_fraction(struct tarn_allocator *allocator);

/* What torch.cuda.get_allocator_backend says: "native", also without a cache, "cudaMallocAsync", or
 * "pluggable" (pluggable.h). Static storage. */
TARN_API const char *tarn_allocator_get_backend(struct tarn_allocator *allocator);

/* Counters, all from one moment. Fields beyond struct_size are left out. */
TARN_API void tarn_allocator_get_stats(struct tarn_allocator *allocator,
                                       struct tarn_stats *stats_out);
TARN_API void tarn_allocator_reset_peak_stats(struct tarn_allocator *allocator);
TARN_API void tarn_allocator_reset_accumulated_stats(struct tarn_allocator *allocator);

/* Size of the largest free block, or of the device's free memory if that is larger and
 * `*largest_out` comes in as 0: PyTorch's cacheInfo. */
TARN_API enum tarn_status tarn_allocator_cache_info(struct tarn_allocator *allocator,
                                                    uint64_t *largest_in_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Checks every invariant; returns how many are violated and describes them. Changes nothing. */
TARN_API uint64_t tarn_allocator_check(struct tarn_allocator *allocator,
                                       struct tarn_findings *findings);

/* One segment and one block, as the walk shows them. Of a growing segment each contiguous mapped
 * range is shown as a segment. */
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
};

struct tarn_block_info {
    uint64_t address;
    uint64_t size;
    uint64_t requested_size;
    uint64_t stack;
    bool allocated;
    bool active; /* allocated or waiting for streams */
};

/* Called in address order, under the allocator's lock: they must not call the allocator. `block` is
 * called for each block of the segment shown before. Either may be NULL. Returning false ends the
 * walk. */
struct tarn_walker {
    void *context;
    bool (*segment)(void *context, const struct tarn_segment_info *segment);
    bool (*block)(void *context, const struct tarn_block_info *block);
};

/* Walks all segments. Fails for want of host memory, and with TARN_ERR_NOT_SUPPORTED under
 * backend:cudaMallocAsync: what the device's pool holds is not known. */
TARN_API enum tarn_status tarn_allocator_walk(struct tarn_allocator *allocator,
                                              const struct tarn_walker *walker) TARN_MUST_CHECK;

/* The same for the segments of one pool; {0, 0} is the default pools. */
TARN_API enum tarn_status
tarn_allocator_walk_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                         const struct tarn_walker *walker) TARN_MUST_CHECK;

/* Settings in force, and new ones: they take effect with the next call; what exists stays as it
 * is. per_process_memory_fraction counts only in those that the allocator was made with. Another
 * backend or no_caching than the present one fails with TARN_ERR_CONFIG. */
TARN_API void tarn_allocator_get_config(struct tarn_allocator *allocator,
                                        struct tarn_config *config_out);
TARN_API enum tarn_status tarn_allocator_set_config(struct tarn_allocator *allocator,
                                                    const struct tarn_config *config,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* What is known when memory runs out. */
struct tarn_oom {
    uint32_t struct_size;
    int device;
    uint64_t requested;    /* bytes that the caller asked for */
    uint64_t rounded;      /* of the block */
    uint64_t segment_size; /* that the device could not give */
    tarn_stream stream;
    uint64_t limit;       /* TARN_SIZE_UNLIMITED = none */
    uint64_t device_free; /* bytes */
    uint64_t device_total;
    uint64_t allocated;
    uint64_t reserved;
    uint64_t private_free; /* free bytes in private pools */
    const char *processes; /* "" or a sentence per process that uses the device */
    bool rejected;         /* refused because of the limit, without asking the device */
};

/* Called on the thread whose allocation failed, without any lock, before it returns: it may use
 * the allocator. No observer is called for a request of an observer's. At most TARN_OBSERVERS_MAX,
 * for the allocator's life; TARN_ERR_LIMIT beyond. */
enum {
    TARN_OBSERVERS_MAX = 8
};

typedef void (*tarn_oom_observer)(void *context, const struct tarn_oom *oom);

/* Adds an observer, with the `context` it is called with. */
TARN_API enum tarn_status tarn_allocator_add_oom_observer(struct tarn_allocator *allocator,
                                                          tarn_oom_observer observer,
                                                          void *context) TARN_MUST_CHECK;

/* Called when no free block fits, before the device is asked: it may free blocks of this allocator
 * (no lock is held) and says whether it did anything; then the search is made again. It must not
 * allocate from this allocator: a request of it that no free block serves fails with
 * TARN_ERR_STATE. */
typedef bool (*tarn_memory_callback)(void *context, struct tarn_allocator *allocator, uint64_t size,
                                     tarn_stream stream);

/* Adds one, for the allocator's life; TARN_ERR_LIMIT when there are too many. */
TARN_API enum tarn_status tarn_allocator_add_memory_callback(struct tarn_allocator *allocator,
                                                             tarn_memory_callback callback,
                                                             void *context) TARN_MUST_CHECK;

enum {
    TARN_SINKS_MAX = 4
};

/* Adds a receiver of events, copied and switched on; at most TARN_SINKS_MAX, then TARN_ERR_LIMIT.
 * Only one of them may capture stacks: TARN_ERR_STATE for a second. TARN_ERR_NOT_SUPPORTED under
 * backend:cudaMallocAsync; with no_caching nothing is reported. */
TARN_API enum tarn_status tarn_allocator_add_sink(struct tarn_allocator *allocator,
                                                  const struct tarn_sink *sink,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Switches the receivers with that context on or off, and gives them another level. Without one
 * that is on, calls are as fast as if there were none. Stacks kept with blocks stay, and are
 * released when the blocks are freed. TARN_ERR_NOT_FOUND when there is none. */
TARN_API enum tarn_status tarn_allocator_set_sink(struct tarn_allocator *allocator,
                                                  const void *context, bool on,
                                                  enum tarn_context_level level,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Takes the receivers with that context away: the stacks that blocks and segments keep of them are
 * released first, and none of their functions is called any more. A receiver that captures may only
 * go while no call of this allocator is under way, a callback's included. TARN_ERR_NOT_FOUND when
 * there is none. */
TARN_API enum tarn_status tarn_allocator_remove_sink(struct tarn_allocator *allocator,
                                                     const void *context,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Sends an ANNOTATE event about an allocated block with that text as its user metadata (NULL: ""),
 * for receivers to keep. TARN_ERR_INVALID_POINTER where nothing is allocated at `ptr`. */
TARN_API enum tarn_status tarn_allocator_annotate(struct tarn_allocator *allocator, tarn_ptr ptr,
                                                  const char *text,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
