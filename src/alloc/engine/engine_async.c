/* SPDX-License-Identifier: MIT */
#include "alloc/engine/engine_async.h"

#include "alloc/config/size_class.h"
#include "alloc/engine/check_number.h"
#include "alloc/engine/engine_methods.h"
#include "alloc/engine/oom.h"
#include "base/assertion.h"
#include "base/host_mem.h"
#include "base/size_text.h"
#include "base/vec.h"

#include <inttypes.h>

/* An allocated block. Deferred: freed by the user, and not yet given back to the pool. */
struct async_block {
    tarn_ptr ptr;
    uint64_t size; /* as requested */
    tarn_stream stream;
    struct tn_vec uses; /* tarn_stream: others that use it, each once */
    struct async_block *next_deferred;
    bool captured; /* allocated while a capture was under way */
    bool deferred;
};

/* Invariants: used = sum of the sizes of all blocks; the deferred blocks are those in the list; the
 * joining stream and event exist (`joining`) from the first recorded use on.
 * Locks: `lock` guards everything but `base`. The pool is called under it, because its calls do not
 * wait. */
struct async {
    struct tarn_allocator base; /* first */
    struct tn_lock lock;
    struct tarn_config config;
    struct tn_map blocks;              /* struct async_block by address */
    struct async_block *deferred;      /* in the order of the frees, as in PyTorch */
    struct async_block **deferred_end; /* where the next one is linked */
    uint64_t deferred_count;
    uint64_t used;  /* bytes allocated, with deferred blocks: compared with the limit */
    uint64_t limit; /* TARN_SIZE_UNLIMITED = none */
    bool joining;
    tarn_stream join_stream;    /* blocks that several streams used are freed on it */
    tn_event_handle join_event; /* through which it waits for the others */
    bool capturing;
    struct tn_vec freed_on; /* tarn_stream: in the last capture, not joined yet, each once */
};

static const struct tn_engine_methods async_methods;

static struct async *async_of(struct tarn_allocator *allocator)
{
    return (struct async *)allocator;
}

static enum tarn_status device_failed(const struct async *async, enum tarn_status status,
                                      const char *what, struct tarn_error *error)
{
    return tn_device_failed(async->base.device, status, what, error);
}

static enum tarn_status refuse(const char *what, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                   "cudaMallocAsync does not yet support %s. If you need it, please file an issue "
                   "describing your use case.",
                   what);
}

/* ---- lists of streams ---- */

static tarn_stream stream_at(const struct tn_vec *streams, size_t i)
{
    return ((const tarn_stream *)streams->items)[i];
}

static bool streams_have(const struct tn_vec *streams, tarn_stream stream)
{
    for (size_t i = 0; i < streams->count; i++) {
        if (stream_at(streams, i) == stream) {
            return true;
        }
    }
    return false;
}

/* False when host memory runs out, but not for a stream that is there or if room was reserved. */
static bool streams_add(struct tn_vec *streams, tarn_stream stream)
{
    return streams_have(streams, stream) || tn_vec_add(streams, &stream);
}

/* ---- blocks ---- */

static void block_destroy(struct async_block *block)
{
    tn_vec_fini(&block->uses);
    tn_host_free(block, sizeof *block);
}

/* The block allocated at that address, or NULL. */
static struct async_block *block_find(const struct async *async, tarn_ptr ptr)
{
    const uint64_t *value = tn_map_find(&async->blocks, ptr);
    struct async_block *block = value ? (struct async_block *)(uintptr_t)*value : NULL;

    return block && !block->deferred ? block : NULL;
}

/* Room must have been reserved. */
static void block_insert(struct async *async, struct async_block *block)
{
    async->used += block->size;
    tn_map_insert(&async->blocks, block->ptr, (uint64_t)(uintptr_t)block);
}

/* The user has freed it; it goes back to the pool later. */
static void block_defer(struct async *async, struct async_block *block)
{
    block->deferred = true;
    block->next_deferred = NULL;
    *async->deferred_end = block;
    async->deferred_end = &block->next_deferred;
    async->deferred_count++;
}

static void block_forget(struct async *async, struct async_block *block)
{
    uint64_t value;
    const bool found = tn_map_take(&async->blocks, block->ptr, &value);

    tn_assert(found && async->used >= block->size);
    (void)found;
    async->used -= block->size;
    block_destroy(block);
}

/* Makes `waiting` wait for what is queued on `stream` now. */
static enum tarn_status join(const struct async *async, tarn_stream waiting, tarn_stream stream)
{
    struct tarn_device *device = async->base.device;
    const enum tarn_status st = device->ops->event_record(device, async->join_event, stream);

    return st ? st : device->ops->stream_wait_event(device, waiting, async->join_event);
}

/* The stream on which the block goes back to the pool. */
static tarn_stream block_last_stream(const struct async *async, const struct async_block *block)
{
    return block->uses.count > 0 ? async->join_stream : block->stream;
}

/* Gives the block back to the pool. On failure it is unchanged; the joining stream may then wait
 * for more than it needs to, which only takes time. */
static enum tarn_status block_give_back(struct async *async, struct async_block *block,
                                        struct tarn_error *error)
{
    struct tarn_device *device = async->base.device;
    const tarn_stream last = block_last_stream(async, block);
    enum tarn_status st = block->uses.count > 0 ? join(async, last, block->stream) : TARN_OK;

    for (size_t i = 0; st == TARN_OK && i < block->uses.count; i++) {
        st = join(async, last, stream_at(&block->uses, i));
    }
    st = st ? st : device->ops->pool_free(device, block->ptr, last);
    if (st) {
        return device_failed(async, st, "freeing memory", error);
    }
    block_forget(async, block);
    return TARN_OK;
}

/* The same for a block that is freed during the capture in which it was allocated. */
static enum tarn_status captured_give_back(struct async *async, struct async_block *block,
                                           struct tarn_error *error)
{
    const tarn_stream last = block_last_stream(async, block);

    if (!tn_vec_reserve(&async->freed_on, 1)) {
        return tn_fail_memory(error);
    }
    const enum tarn_status st = block_give_back(async, block, error);

    if (st == TARN_OK) {
        const bool added = streams_add(&async->freed_on, last);

        tn_assert(added);
        (void)added;
    }
    return st;
}

/* Gives back what was freed during a capture that has ended. */
static enum tarn_status deferred_give_back(struct async *async, struct tarn_error *error)
{
    while (async->deferred && !async->capturing) {
        struct async_block *block = async->deferred;
        struct async_block *next = block->next_deferred;
        const enum tarn_status st = block_give_back(async, block, error);

        if (st) {
            return st;
        }
        async->deferred = next;
        async->deferred_end = next ? async->deferred_end : &async->deferred;
        async->deferred_count--;
    }
    return TARN_OK;
}

/* ---- allocating and freeing ---- */

/* PyTorch's message. */
static enum tarn_status alloc_exceeds(const struct async *async, uint64_t size,
                                      struct tarn_error *error)
{
    struct tarn_device *device = async->base.device;
    uint64_t free_bytes = 0;
    uint64_t total = device->total_memory;

    (void)device->ops->memory_info(device, &free_bytes, &total);
    return tn_fail(error, TARN_ERR_OUT_OF_MEMORY,
                   "Allocation on device %d would exceed allowed memory. (out of memory)\n"
                   "Currently allocated     : %s\n"
                   "Requested               : %s\n"
                   "Device limit            : %s\n"
                   "Free (according to CUDA): %s\n"
                   "PyTorch limit (set by user-supplied memory fraction)\n"
                   "                        : %s",
                   device->ordinal, tn_size_text_message(async->used).text,
                   tn_size_text_message(size).text, tn_size_text_message(total).text,
                   tn_size_text_message(free_bytes).text, tn_size_text_message(async->limit).text);
}

static bool limit_allows(const struct async *async, uint64_t size)
{
    return async->used <= async->limit && size <= async->limit - async->used;
}

static enum tarn_status alloc_locked(struct async *async, struct async_block *block,
                                     struct tarn_error *error)
{
    struct tarn_device *device = async->base.device;
    enum tarn_status st = deferred_give_back(async, error);

    if (st) {
        return st;
    }
    if (!tn_map_reserve(&async->blocks, 1)) {
        return tn_fail_memory(error);
    }
    st = limit_allows(async, block->size)
             ? device->ops->pool_alloc(device, block->size, block->stream, &block->ptr)
             : TARN_ERR_OUT_OF_MEMORY;
    if (st == TARN_ERR_OUT_OF_MEMORY) {
        return alloc_exceeds(async, block->size, error);
    }
    if (st) {
        return device_failed(async, st, "allocating memory", error);
    }
    block->captured = async->capturing;
    block_insert(async, block);
    return TARN_OK;
}

static enum tarn_status async_alloc(struct tarn_allocator *allocator, uint64_t size,
                                    tarn_stream stream, tarn_ptr *ptr_out, struct tarn_error *error)
{
    struct async *async = async_of(allocator);

    if (size >= TN_MAX_REQUEST) {
        return tn_oom_absurd(error);
    }
    if (tn_stream_is_per_thread(allocator->device, stream)) {
        return tn_stream_refuse_per_thread(stream, error);
    }
    struct async_block *block = tn_host_alloc_zero(sizeof *block);

    if (!block) {
        return tn_fail_memory(error);
    }
    block->size = size;
    block->stream = stream;
    tn_vec_init(&block->uses, sizeof(tarn_stream));
    tn_lock_acquire(&async->lock);
    const enum tarn_status st = alloc_locked(async, block, error);

    if (st == TARN_OK) {
        *ptr_out = block->ptr;
    }
    tn_lock_release(&async->lock);
    if (st) {
        block_destroy(block);
    }
    return st;
}

static enum tarn_status async_free(struct tarn_allocator *allocator, tarn_ptr ptr,
                                   struct tarn_error *error)
{
    struct async *async = async_of(allocator);
    enum tarn_status st = TARN_OK;

    tn_lock_acquire(&async->lock);
    struct async_block *block = block_find(async, ptr);

    if (!block) {
        st = tn_pointer_unknown(ptr, error);
    } else if (async->capturing && !block->captured) {
        block_defer(async, block);
    } else {
        st = async->capturing ? captured_give_back(async, block, error)
                              : block_give_back(async, block, error);
    }
    tn_lock_release(&async->lock);
    return st;
}

/* ---- uses on other streams ---- */

/* Creates the joining stream and event now, so that a free creates nothing. */
static enum tarn_status joining_prepare(struct async *async, struct tarn_error *error)
{
    struct tarn_device *device = async->base.device;
    tarn_stream stream = 0;

    if (async->joining) {
        return TARN_OK;
    }
    enum tarn_status st = device->ops->stream_create(device, &stream);

    if (st) {
        return device_failed(async, st, "creating a stream", error);
    }
    st = device->ops->event_create(device, &async->join_event);
    if (st) {
        (void)device_failed(async, st, "creating an event", error);
        (void)device->ops->stream_destroy(device, stream);
        return st;
    }
    async->join_stream = stream;
    async->joining = true;
    return TARN_OK;
}

/* The block's own stream needs no record. */
static enum tarn_status async_record_stream(struct tarn_allocator *allocator, tarn_ptr ptr,
                                            tarn_stream stream, struct tarn_error *error)
{
    struct async *async = async_of(allocator);
    enum tarn_status st = TARN_OK;

    tn_lock_acquire(&async->lock);
    struct async_block *block = block_find(async, ptr);

    if (!block) {
        st = tn_pointer_unknown(ptr, error);
    } else if (stream != block->stream) {
        st = joining_prepare(async, error);
        if (st == TARN_OK && !streams_add(&block->uses, stream)) {
            st = tn_fail_memory(error);
        }
    }
    tn_lock_release(&async->lock);
    return st;
}

/* ---- the pool ---- */

/* Waits without the lock; blocks freed in the meantime may stay in the pool. */
static enum tarn_status async_empty_cache(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                          struct tarn_error *error)
{
    struct async *async = async_of(allocator);
    struct tarn_device *device = allocator->device;

    (void)id;
    tn_lock_acquire(&async->lock);
    enum tarn_status st = deferred_give_back(async, error);

    tn_lock_release(&async->lock);
    if (st) {
        return st;
    }
    st = device->ops->device_wait(device);
    st = st ? st : device->ops->pool_trim(device, 0);
    return st ? device_failed(async, st, "releasing cached memory", error) : TARN_OK;
}

/* What is not in use now; nobody waits. */
static enum tarn_status async_trim(struct tarn_allocator *allocator, uint64_t target,
                                   struct tarn_error *error)
{
    struct tarn_device *device = allocator->device;
    const enum tarn_status st = device->ops->pool_trim(device, target);

    return st ? device_failed(async_of(allocator), st, "releasing cached memory", error) : TARN_OK;
}

static enum tarn_status async_base_allocation(struct tarn_allocator *allocator, tarn_ptr ptr,
                                              tarn_ptr *base_out, uint64_t *size_out,
                                              struct tarn_error *error)
{
    struct async *async = async_of(allocator);
    enum tarn_status st = TARN_OK;

    tn_lock_acquire(&async->lock);
    const struct async_block *block = block_find(async, ptr);

    if (!block) {
        st = tn_pointer_unknown(ptr, error);
    } else {
        if (base_out) {
            *base_out = ptr;
        }
        if (size_out) {
            *size_out = block->size;
        }
    }
    tn_lock_release(&async->lock);
    return st;
}

/* Allocates all that is free, or half of it, and so on; block->size is 0 if nothing is left. */
static enum tarn_status largest_alloc(const struct async *async, struct async_block *block,
                                      struct tarn_error *error)
{
    struct tarn_device *device = async->base.device;
    const uint64_t room = limit_allows(async, 0) ? async->limit - async->used : 0;
    uint64_t guess;
    uint64_t total;
    enum tarn_status st = device->ops->memory_info(device, &guess, &total);

    if (st) {
        return device_failed(async, st, "querying free memory", error);
    }
    for (guess = guess < room ? guess : room; guess > 0; guess /= 2) {
        st = device->ops->pool_alloc(device, guess, 0, &block->ptr);
        if (st == TARN_OK) {
            break;
        }
        if (st != TARN_ERR_OUT_OF_MEMORY) {
            return device_failed(async, st, "probing how much memory there is", error);
        }
    }
    block->size = guess;
    return TARN_OK;
}

/* The largest amount that can be allocated now, by trial. As in PyTorch, the trial may leave the
 * pool larger. The trial allocation is an ordinary block, so that nothing is lost if it cannot be
 * given back at once. */
static enum tarn_status largest_try(struct async *async, struct async_block *block,
                                    uint64_t *largest_out, struct tarn_error *error)
{
    enum tarn_status st = TARN_ERR_HOST_MEMORY;

    if (!tn_map_reserve(&async->blocks, 1)) {
        block_destroy(block);
        return tn_fail_memory(error);
    }
    st = largest_alloc(async, block, error);
    const uint64_t size = block->size;

    if (st || size == 0) {
        block_destroy(block);
    } else {
        block_insert(async, block);
        st = block_give_back(async, block, error);
        if (st) {
            block_defer(async, block);
        }
    }
    if (st == TARN_OK) {
        *largest_out = size;
    }
    return st;
}

static enum tarn_status async_cache_info(struct tarn_allocator *allocator, uint64_t *largest_in_out,
                                         struct tarn_error *error)
{
    struct async *async = async_of(allocator);
    struct async_block *block = tn_host_alloc_zero(sizeof *block);

    if (!block) {
        return tn_fail_memory(error);
    }
    tn_lock_acquire(&async->lock);
    const enum tarn_status st = largest_try(async, block, largest_in_out, error);

    tn_lock_release(&async->lock);
    return st;
}

/* ---- settings and statistics ---- */

static enum tarn_status async_set_enabled(struct tarn_allocator *allocator, bool enabled,
                                          struct tarn_error *error)
{
    (void)allocator;
    return enabled ? TARN_OK
                   : tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                             "backend:cudaMallocAsync cannot be disabled");
}

static bool async_is_enabled(struct tarn_allocator *allocator)
{
    (void)allocator;
    return true;
}

/* Unlike the caching engine, 1 is a limit too: the device's memory. */
static enum tarn_status async_set_fraction(struct tarn_allocator *allocator, double fraction,
                                           struct tarn_error *error)
{
    struct async *async = async_of(allocator);
    uint64_t free_bytes;
    uint64_t total;

    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "invalid fraction:%g. Please set within (0, 1).", fraction);
    }
    const enum tarn_status st =
        allocator->device->ops->memory_info(allocator->device, &free_bytes, &total);

    if (st) {
        return device_failed(async, st, "querying the device's memory", error);
    }
    tn_lock_acquire(&async->lock);
    async->limit = (uint64_t)(fraction * (double)total);
    tn_lock_release(&async->lock);
    return TARN_OK;
}

static uint64_t async_get_limit(struct tarn_allocator *allocator)
{
    struct async *async = async_of(allocator);

    tn_lock_acquire(&async->lock);
    const uint64_t limit = async->limit;

    tn_lock_release(&async->lock);
    return limit;
}

static void async_get_config(struct tarn_allocator *allocator, struct tarn_config *config_out)
{
    struct async *async = async_of(allocator);

    tn_lock_acquire(&async->lock);
    *config_out = async->config;
    tn_lock_release(&async->lock);
}

static void async_set_config(struct tarn_allocator *allocator, const struct tarn_config *config)
{
    struct async *async = async_of(allocator);

    tn_lock_acquire(&async->lock);
    async->config = *config;
    tn_lock_release(&async->lock);
}

static void stat_set(struct tarn_stats *stats, enum tarn_stat_kind kind, uint64_t current,
                     uint64_t peak)
{
    stats->by_pool[kind][TARN_STAT_ALL].current = (int64_t)current;
    stats->by_pool[kind][TARN_STAT_ALL].peak = (int64_t)peak;
}

/* What the device does not report stays 0. It is asked twice: with the lock, or a call in between
 * could leave a peak below its current value. */
static void async_get_stats(struct tarn_allocator *allocator, struct tarn_stats *stats_out)
{
    struct async *async = async_of(allocator);
    struct tarn_device *device = allocator->device;
    uint64_t reserved;
    uint64_t used;
    uint64_t reserved_peak;
    uint64_t used_peak;

    tn_lock_acquire(&async->lock);
    const bool known = !device->ops->pool_info(device, &reserved, &used) &&
                       !device->ops->pool_peaks(device, &reserved_peak, &used_peak);

    tn_lock_release(&async->lock);
    if (!known) {
        return;
    }
    stat_set(stats_out, TARN_STAT_ALLOCATED_BYTES, used, used_peak);
    stat_set(stats_out, TARN_STAT_ACTIVE_BYTES, used, used_peak);
    stat_set(stats_out, TARN_STAT_RESERVED_BYTES, reserved, reserved_peak);
}

static void async_reset_peak_stats(struct tarn_allocator *allocator)
{
    struct async *async = async_of(allocator);

    tn_lock_acquire(&async->lock);
    (void)allocator->device->ops->pool_reset_peaks(allocator->device);
    tn_lock_release(&async->lock);
}

/* PyTorch only warns that this does nothing. */
static void async_reset_accumulated_stats(struct tarn_allocator *allocator)
{
    (void)allocator;
}

static uint64_t async_check(struct tarn_allocator *allocator, struct tarn_findings *findings)
{
    struct async *async = async_of(allocator);
    const uint64_t before = findings->count;
    uint64_t used = 0;
    uint64_t uses = 0;
    uint64_t deferred = 0;
    uint64_t listed = 0;

    tn_lock_acquire(&async->lock);
    for (uint64_t i = 0; i < async->blocks.capacity; i++) {
        if (async->blocks.slots[i].key != 0) {
            const struct async_block *block =
                (const struct async_block *)(uintptr_t)async->blocks.slots[i].value;

            used += block->size;
            uses += block->uses.count;
            deferred += block->deferred;
        }
    }
    for (const struct async_block *b = async->deferred; b && tn_always(listed < deferred);
         b = b->next_deferred) { /* each of them was counted */
        listed++;
    }
    tn_check_number("bytes allocated", async->used, used, findings);
    tn_check_number("uses that nothing joins", 0, async->joining ? 0 : uses, findings);
    tn_check_number("deferred blocks", async->deferred_count, deferred, findings);
    tn_check_number("deferred blocks in the list", listed, deferred, findings);
    tn_lock_release(&async->lock);
    return findings->count - before;
}

/* ---- capture ---- */

static enum tarn_status async_begin_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                         tarn_pool_filter filter, void *context,
                                         struct tarn_error *error)
{
    struct async *async = async_of(allocator);
    enum tarn_status st = TARN_OK;

    (void)id;
    (void)filter;
    (void)context;
    tn_lock_acquire(&async->lock);
    if (async->capturing) {
        st = tn_fail(error, TARN_ERR_STATE, "Only one capture at a time is allowed in a process.");
    } else {
        async->capturing = true;
        async->freed_on.count = 0;
    }
    tn_lock_release(&async->lock);
    return st;
}

static enum tarn_status async_end_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                       struct tarn_error *error)
{
    struct async *async = async_of(allocator);
    enum tarn_status st = TARN_OK;

    (void)id;
    tn_lock_acquire(&async->lock);
    if (!async->capturing) {
        st = tn_fail(error, TARN_ERR_STATE,
                     "CudaMallocAsync::notifyCaptureAboutToEnd called, but "
                     "CudaMallocAsync::capture_underway is false.");
    }
    async->capturing = false;
    tn_lock_release(&async->lock);
    return st;
}

/* As PyTorch's endAllocateToPool. */
static enum tarn_status freed_on_join(struct async *async, tarn_stream stream,
                                      struct tarn_error *error)
{
    enum tarn_status st = async->freed_on.count > 0 ? joining_prepare(async, error) : TARN_OK;

    for (size_t i = 0; st == TARN_OK && i < async->freed_on.count; i++) {
        st = join(async, stream, stream_at(&async->freed_on, i));
        if (st) {
            return device_failed(async, st, "joining the streams of a capture", error);
        }
    }
    if (st == TARN_OK) {
        async->freed_on.count = 0;
    }
    return st;
}

static enum tarn_status async_join_frees(struct tarn_allocator *allocator, tarn_stream stream,
                                         struct tarn_error *error)
{
    struct async *async = async_of(allocator);

    tn_lock_acquire(&async->lock);
    const enum tarn_status st = freed_on_join(async, stream, error);

    tn_lock_release(&async->lock);
    return st;
}

/* Nothing to do: begin and end of the routing say it. */
static enum tarn_status async_mark_capture(struct tarn_allocator *allocator, bool begins,
                                           struct tarn_error *error)
{
    (void)allocator;
    (void)begins;
    (void)error;
    return TARN_OK;
}

/* Nothing to do: memory that a graph uses belongs to the graph. */
static enum tarn_status async_release_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                           struct tarn_error *error)
{
    (void)allocator;
    (void)id;
    (void)error;
    return TARN_OK;
}

/* ---- not supported ---- */

static enum tarn_status async_walk(struct tarn_allocator *allocator,
                                   const struct tarn_pool_id *pool,
                                   const struct tarn_walker *walker, struct tarn_error *error)
{
    (void)allocator;
    (void)pool;
    (void)walker;
    return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                   "Calling snapshot with backend:cudaMallocAsync is not meaningful. (For "
                   "backend:native, snapshot returns a detailed summary of all blocks tracked by "
                   "the allocator, but the cudaMallocAsync backend does not track individual "
                   "blocks.)");
}

static enum tarn_status async_look(struct tarn_allocator *allocator,
                                   const struct tarn_pool_id *pool, const struct tn_look *look,
                                   struct tarn_error *error)
{
    (void)look;
    return async_walk(allocator, pool, NULL, error);
}

/* ---- init and fini ---- */

enum tarn_status tn_async_create(struct tarn_device *device, const struct tarn_config *config,
                                 struct tarn_allocator **allocator_out)
{
    struct async *async = tn_host_alloc_zero(sizeof *async);

    if (!async) {
        return TARN_ERR_HOST_MEMORY;
    }
    async->base = (struct tarn_allocator){.methods = &async_methods, .device = device};
    async->config = *config;
    async->limit = TARN_SIZE_UNLIMITED;
    async->deferred_end = &async->deferred;
    tn_vec_init(&async->freed_on, sizeof(tarn_stream));
    tn_lock_init(&async->lock, TN_LOCK_ALLOCATOR);
    *allocator_out = &async->base;
    return TARN_OK;
}

/* Nobody uses the blocks any more: there is no stream to wait for. */
static void async_destroy(struct tarn_allocator *allocator)
{
    struct async *async = async_of(allocator);
    struct tarn_device *device = allocator->device;

    for (uint64_t i = 0; i < async->blocks.capacity; i++) {
        if (async->blocks.slots[i].key != 0) {
            struct async_block *block =
                (struct async_block *)(uintptr_t)async->blocks.slots[i].value;

            (void)device->ops->pool_free(device, block->ptr, block->stream);
            block_destroy(block);
        }
    }
    if (async->joining) {
        (void)device->ops->event_destroy(device, async->join_event);
        (void)device->ops->stream_destroy(device, async->join_stream);
    }
    (void)device->ops->device_wait(device);
    (void)device->ops->pool_trim(device, 0);
    tn_map_fini(&async->blocks);
    tn_vec_fini(&async->freed_on);
    tn_lock_fini(&async->lock);
    tn_host_free(async, sizeof *async);
}

static const struct tn_engine_methods async_methods = {
    .name = "cudaMallocAsync",
    .backend = "cudaMallocAsync",
    .refuse = refuse,
    .destroy = async_destroy,
    .alloc = async_alloc,
    .free = async_free,
    .record_stream = async_record_stream,
    .empty_cache = async_empty_cache,
    .trim = async_trim,
    .base_allocation = async_base_allocation,
    .cache_info = async_cache_info,
    .set_enabled = async_set_enabled,
    .is_enabled = async_is_enabled,
    .set_fraction = async_set_fraction,
    .get_limit = async_get_limit,
    .get_config = async_get_config,
    .set_config = async_set_config,
    .get_stats = async_get_stats,
    .reset_peak_stats = async_reset_peak_stats,
    .reset_accumulated_stats = async_reset_accumulated_stats,
    .check = async_check,
    .walk = async_walk,
    .look = async_look,
    .begin_pool = async_begin_pool,
    .end_pool = async_end_pool,
    .join_frees = async_join_frees,
    .mark_capture = async_mark_capture,
    .release_pool = async_release_pool,
};
