/* SPDX-License-Identifier: MIT */
/*
 * Implements tarn/pinned.h, over the structures of pinned_core.h.
 *
 * Events are queried in the order of the frees up to the first incomplete one, as in PyTorch. With
 * pinned_use_background_threads a thread does that; a request then only searches the waiting blocks
 * for one of its size. What is larger than pinned_max_cached_size returns to the driver as soon as
 * its events are complete, through the cache, so that the driver is called without the lock.
 *
 * Locks: `lock` guards everything that is not constant. It is held for a few memory accesses, never
 * during a device call.
 */
#include "tarn/pinned.h"

#include "alloc/config/config_parse.h"
#include "alloc/config/size_class.h"
#include "alloc/pool/counters.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/sized.h"
#include "pinned/pinned_core.h"
#include "pinned/pinned_look.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

enum {
    BACKGROUND_NAP_NS = 100000
};

#define SIZE_LIMIT ((uint64_t)1 << (TN_PINNED_SIZES - 1))

static uint64_t block_start(const struct tn_pinned_block *block)
{
    return (uint64_t)(uintptr_t)block->memory.start;
}

static int block_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(block_start(tn_pinned_block_of(a)),
                             block_start(tn_pinned_block_of(b)));
}

/* The allocated block that contains the address; NULL when there is none. */
static struct tn_pinned_block *block_find(const struct tarn_pinned *pinned, const void *memory)
{
    const struct tn_pinned_block key = {.memory.start = (void *)(uintptr_t)memory};
    const struct tn_tree_node *node = tn_tree_find_at_most(&pinned->blocks, &key.node);
    struct tn_pinned_block *block = node ? tn_pinned_block_of(node) : NULL;

    return block && block->state == TN_PINNED_HANDED_OUT &&
                   (uint64_t)(uintptr_t)memory - block_start(block) < block->memory.size
               ? block
               : NULL;
}

static enum tarn_status pinned_failed(struct tarn_device *device, enum tarn_status status,
                                      const char *what, struct tarn_error *error)
{
    return tn_fail(error, status, "%s: %s", what, device->ops->last_error(device));
}

static enum tarn_status pointer_unknown(const void *memory, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_INVALID_POINTER, "%#" PRIx64 " is not allocated pinned memory",
                   (uint64_t)(uintptr_t)memory);
}

/* ---- events ---- */

/* Before the lock. */
static uint64_t stack_capture(const struct tarn_pinned *pinned, enum tarn_context_level level)
{
    const struct tarn_sink *sink = &pinned->sink;

    return sink->capture && sink->level >= level ? sink->capture(sink->context, level) : 0;
}

/* With the lock, like the following functions. */
static void stack_release(const struct tarn_pinned *pinned, uint64_t stack)
{
    if (stack != 0 && pinned->sink.release) {
        pinned->sink.release(pinned->sink.context, stack);
    }
}

/* The block takes ownership of the stack. */
static void block_keep_stack(const struct tarn_pinned *pinned, struct tn_pinned_block *block,
                             uint64_t stack)
{
    stack_release(pinned, block->stack);
    block->stack = stack;
}

static void block_emit(const struct tarn_pinned *pinned, const struct tn_pinned_block *block,
                       enum tarn_action action, uint64_t size)
{
    const struct tarn_sink *sink = &pinned->sink;
    const struct tarn_trace_event event = {
        .action = action,
        .device = pinned->device->ordinal,
        .address = block_start(block),
        .size = size,
        .stack = sink->level >= TARN_CONTEXT_ALLOC ? block->stack : 0,
        .compile_context = tarn_get_compile_context(),
        .user_metadata = tarn_get_user_metadata(),
    };

    if (sink->receive) {
        sink->receive(sink->context, &event);
    }
}

/* The block was allocated for a request. */
static void block_begin(const struct tarn_pinned *pinned, struct tn_pinned_block *block,
                        uint64_t requested, uint64_t stack)
{
    block->requested = requested;
    block_keep_stack(pinned, block, stack);
    block_emit(pinned, block, TARN_ACTION_ALLOC, requested);
}

/* ---- freed blocks ---- */

/* With the lock. */
static void block_cache(struct tarn_pinned *pinned, struct tn_pinned_block *block)
{
    const unsigned index = tn_pinned_list_of(block->memory.size);

    block_emit(pinned, block, TARN_ACTION_FREE_COMPLETED, block->requested);
    block_keep_stack(pinned, block, 0);
    block->state = TN_PINNED_CACHED;
    block->captured = false;
    block->next = pinned->cached[index];
    pinned->cached[index] = block;
    tn_stat_decrease(&pinned->stats.active_requests, 1);
    tn_stat_decrease(&pinned->stats.active_bytes, block->memory.size);
}

/* Allocates the cached block of that size, or of a larger one in its list, that was freed last;
 * NULL when there is none. With the lock. */
static struct tn_pinned_block *block_reuse(struct tarn_pinned *pinned, uint64_t size)
{
    struct tn_pinned_block **link = &pinned->cached[tn_pinned_list_of(size)];

    while (*link && (*link)->memory.size < size) {
        link = &(*link)->next;
    }
    struct tn_pinned_block *block = *link;

    if (block) {
        *link = block->next;
        block->state = TN_PINNED_HANDED_OUT;
        tn_stat_increase(&pinned->stats.active_requests, 1);
        tn_stat_increase(&pinned->stats.active_bytes, block->memory.size);
    }
    return block;
}

/* ---- releasing ---- */

static enum tarn_status memory_give(struct tarn_pinned *pinned,
                                    const struct tn_pinned_memory *memory)
{
    const uint64_t begin = tn_clock_now_ns();
    const enum tarn_status st = tn_pinned_source_give(&pinned->source, memory);

    if (st == TARN_OK) {
        tn_lock_acquire(&pinned->lock);
        pinned->stats.num_host_free++;
        tn_pinned_duration_add(&pinned->stats.host_free_time, begin);
        tn_lock_release(&pinned->lock);
    }
    return st;
}

static void block_free(struct tn_pinned_block *block)
{
    tn_vec_fini(&block->uses);
    tn_host_free(block, sizeof *block);
}

/* Unlinks one cached block of more than `size` bytes that is not in the reserved segment; NULL when
 * there is none. */
static struct tn_pinned_block *block_evict(struct tarn_pinned *pinned, uint64_t size)
{
    struct tn_pinned_block *found = NULL;

    tn_lock_acquire(&pinned->lock);
    for (unsigned i = tn_pinned_list_of(size + 1); i < TN_PINNED_SIZES && !found; i++) {
        struct tn_pinned_block **link = &pinned->cached[i];

        while (*link &&
               ((*link)->memory.size <= size || (*link)->memory.origin == TN_PINNED_RESERVED)) {
            link = &(*link)->next;
        }
        found = *link;
        if (found) {
            *link = found->next;
            tn_tree_remove(&pinned->blocks, &found->node);
            tn_stat_decrease(&pinned->stats.allocations, 1);
            tn_stat_decrease(&pinned->stats.allocated_bytes, found->memory.size);
        }
    }
    tn_lock_release(&pinned->lock);
    return found;
}

/* Reverts the removal from the cache. */
static void block_restore(struct tarn_pinned *pinned, struct tn_pinned_block *block)
{
    const unsigned index = tn_pinned_list_of(block->memory.size);

    tn_lock_acquire(&pinned->lock);
    block->next = pinned->cached[index];
    pinned->cached[index] = block;
    tn_tree_insert(&pinned->blocks, &block->node);
    pinned->stats.allocations.current++;
    pinned->stats.allocations.freed--;
    pinned->stats.allocated_bytes.current += (int64_t)block->memory.size;
    pinned->stats.allocated_bytes.freed -= (int64_t)block->memory.size;
    tn_lock_release(&pinned->lock);
}

/* Returns cached blocks of more than `size` bytes to the driver. */
static enum tarn_status blocks_release(struct tarn_pinned *pinned, uint64_t size,
                                       struct tarn_error *error)
{
    struct tn_pinned_block *block;
    enum tarn_status st = TARN_OK;

    while (st == TARN_OK && (block = block_evict(pinned, size)) != NULL) {
        st = memory_give(pinned, &block->memory);
        if (st) {
            (void)pinned_failed(pinned->device, st, "releasing pinned memory", error);
            block_restore(pinned, block);
        } else {
            tn_lock_acquire(&pinned->lock);
            block_emit(pinned, block, TARN_ACTION_SEGMENT_FREE, block->memory.size);
            tn_lock_release(&pinned->lock);
            block_free(block);
        }
    }
    return st;
}

/* What is too large for the cache has been freed. Where the driver fails it stays there until the
 * next time. */
static void large_release(struct tarn_pinned *pinned)
{
    if (pinned->max_cached < SIZE_LIMIT) {
        (void)blocks_release(pinned, pinned->max_cached, NULL);
    }
}

/* ---- what blocks wait for ---- */

/* An event has completed. With the lock; true if its block is now cached. */
static bool event_is_done(struct tarn_pinned *pinned, struct tn_pinned_event *event)
{
    struct tn_pinned_block *block = event->block;
    const bool last = --block->event_count == 0;

    if (last) {
        block_cache(pinned, block);
    }
    tn_pinned_events_put_spare(&pinned->events, event);
    return last;
}

static struct tn_pinned_event *pop_event(struct tarn_pinned *pinned)
{
    tn_lock_acquire(&pinned->lock);
    struct tn_pinned_event *event = tn_pinned_events_pop(&pinned->events);

    pinned->asked += event != NULL;
    tn_lock_release(&pinned->lock);
    return event;
}

/* Caches the blocks whose events are complete, up to the first incomplete event. */
static enum tarn_status events_complete(struct tarn_pinned *pinned, struct tarn_error *error)
{
    struct tn_pinned_event *event;
    enum tarn_status st = TARN_OK;

    while (st == TARN_OK && (event = pop_event(pinned)) != NULL) {
        st = event->device->ops->event_query(event->device, event->event);
        if (st != TARN_OK && st != TARN_ERR_NOT_READY) {
            (void)pinned_failed(event->device, st, "querying an event", error);
        }
        tn_lock_acquire(&pinned->lock);
        pinned->asked--;
        if (st == TARN_OK) {
            (void)event_is_done(pinned, event);
        } else {
            tn_pinned_events_push_front(&pinned->events, event);
        }
        tn_lock_release(&pinned->lock);
    }
    return st == TARN_ERR_NOT_READY ? TARN_OK : st;
}

static enum tarn_status process_events(struct tarn_pinned *pinned, struct tarn_error *error)
{
    const enum tarn_status st = events_complete(pinned, error);

    large_release(pinned);
    return st;
}

/* Queries all events of blocks of that size until one block is cached. */
static void process_events_of_size(struct tarn_pinned *pinned, uint64_t size)
{
    tn_lock_acquire(&pinned->lock);
    uint64_t left = pinned->events.count;

    tn_lock_release(&pinned->lock);
    for (bool found = false; left > 0 && !found; left--) {
        struct tn_pinned_event *event = pop_event(pinned);

        if (!event) {
            break;
        }
        const bool done = event->block->memory.size == size &&
                          event->device->ops->event_query(event->device, event->event) == TARN_OK;

        tn_lock_acquire(&pinned->lock);
        pinned->asked--;
        if (done) {
            found = event_is_done(pinned, event);
        } else {
            tn_pinned_events_push(&pinned->events, event);
        }
        tn_lock_release(&pinned->lock);
    }
}

static void *background(void *argument)
{
    struct tarn_pinned *pinned = argument;
    const struct timespec nap = {.tv_nsec = BACKGROUND_NAP_NS};

    while (!atomic_load_explicit(&pinned->stops, memory_order_relaxed)) {
        (void)process_events(pinned, NULL); /* requests will report the failure */
        (void)nanosleep(&nap, NULL);
    }
    return NULL;
}

/* Starts the thread once; if that fails, requests still find blocks of their size. */
static void background_start(struct tarn_pinned *pinned)
{
    tn_lock_acquire(&pinned->lock);
    if (!pinned->thread_runs) {
        pinned->thread_runs = pthread_create(&pinned->thread, NULL, background, pinned) == 0;
    }
    tn_lock_release(&pinned->lock);
}

/* ---- allocating ---- */

static enum tarn_status memory_take(struct tarn_pinned *pinned, uint64_t size,
                                    struct tn_pinned_memory *memory_out, struct tarn_error *error)
{
    struct tarn_device *device = pinned->device;
    const uint64_t begin = tn_clock_now_ns();
    const enum tarn_status st = tn_pinned_source_take(&pinned->source, size, memory_out);

    if (st) {
        return pinned_failed(device, st, "allocating pinned memory", error);
    }
    tn_lock_acquire(&pinned->lock);
    pinned->stats.num_host_alloc++;
    tn_pinned_duration_add(&pinned->stats.host_alloc_time, begin);
    tn_lock_release(&pinned->lock);
    return TARN_OK;
}

/* A caller's request. */
struct request {
    uint64_t size;
    uint64_t stack;
};

/* Allocates a new block of `size` bytes. */
static enum tarn_status block_make(struct tarn_pinned *pinned, const struct request *request,
                                   uint64_t size, struct tn_pinned_block **block_out,
                                   struct tarn_error *error)
{
    struct tn_pinned_block *block = tn_host_alloc_zero(sizeof *block);

    if (!block) {
        return tn_fail_memory(error);
    }
    enum tarn_status st = memory_take(pinned, size, &block->memory, error);

    if (st == TARN_ERR_OUT_OF_MEMORY && tarn_pinned_empty_cache(pinned, NULL) == TARN_OK) {
        st = memory_take(pinned, size, &block->memory, error);
    }
    if (st) {
        tn_host_free(block, sizeof *block);
        return st;
    }
    block->state = TN_PINNED_HANDED_OUT;
    tn_vec_init(&block->uses, sizeof(struct tn_pinned_use));
    tn_lock_acquire(&pinned->lock);
    tn_tree_insert(&pinned->blocks, &block->node);
    block->stack = request->stack; /* reported with this event, owned by the ALLOC that follows */
    block_emit(pinned, block, TARN_ACTION_SEGMENT_ALLOC, size);
    block->stack = 0;
    block_begin(pinned, block, request->size, request->stack);
    tn_stat_increase(&pinned->stats.allocations, 1);
    tn_stat_increase(&pinned->stats.allocated_bytes, size);
    tn_stat_increase(&pinned->stats.active_requests, 1);
    tn_stat_increase(&pinned->stats.active_bytes, size);
    tn_lock_release(&pinned->lock);
    *block_out = block;
    return TARN_OK;
}

static struct tn_pinned_block *block_take(struct tarn_pinned *pinned, const struct request *request,
                                          uint64_t size)
{
    tn_lock_acquire(&pinned->lock);
    struct tn_pinned_block *block = block_reuse(pinned, size);

    if (block) {
        block_begin(pinned, block, request->size, request->stack);
    }
    tn_lock_release(&pinned->lock);
    return block;
}

/* A cached block of that size, or a new one. */
static enum tarn_status request_serve(struct tarn_pinned *pinned, const struct request *request,
                                      struct tn_pinned_block **block_out, struct tarn_error *error)
{
    const uint64_t rounded =
        request->size <= pinned->max_rounded ? tn_pow2_ceil(request->size) : request->size;
    enum tarn_status st = TARN_OK;

    if (!pinned->background) {
        st = process_events(pinned, error);
    }
    *block_out = st == TARN_OK ? block_take(pinned, request, rounded) : NULL;
    if (st == TARN_OK && !*block_out && pinned->background) {
        if (rounded <= pinned->max_cached) {
            process_events_of_size(pinned, rounded);
            *block_out = block_take(pinned, request, rounded);
        }
        background_start(pinned);
    }
    if (st == TARN_OK && !*block_out) {
        st = block_make(pinned, request, rounded, block_out, error);
    }
    return st;
}

enum tarn_status tarn_pinned_alloc(struct tarn_pinned *pinned, uint64_t size, void **memory_out,
                                   struct tarn_error *error)
{
    struct tn_pinned_block *block = NULL;

    if (size == 0) {
        *memory_out = NULL;
        return TARN_OK;
    }
    if (tn_fork_passed(&pinned->fork)) {
        return tn_fork_refuse(error, "the pinned allocator");
    }
    if (size > SIZE_LIMIT) {
        return tn_fail(error, TARN_ERR_OUT_OF_MEMORY,
                       "%" PRIu64 " bytes of pinned memory exceed any host's memory", size);
    }
    const struct request request = {size, stack_capture(pinned, TARN_CONTEXT_STATE)};
    const enum tarn_status st = request_serve(pinned, &request, &block, error);

    if (block) {
        *memory_out = block->memory.start;
    } else {
        tn_lock_acquire(&pinned->lock);
        stack_release(pinned, request.stack);
        tn_lock_release(&pinned->lock);
    }
    return st;
}

/* ---- freeing ---- */

/* A list with a recorded event for each use; empty on failure. */
static enum tarn_status events_record(struct tarn_pinned *pinned,
                                      const struct tn_pinned_block *block,
                                      struct tn_pinned_event **list_out, struct tarn_error *error)
{
    const struct tn_pinned_use *uses = block->uses.items;
    enum tarn_status st = TARN_OK;

    for (size_t i = 0; st == TARN_OK && i < block->uses.count; i++) {
        struct tarn_device *device = uses[i].device;

        tn_lock_acquire(&pinned->lock);
        struct tn_pinned_event *event = tn_pinned_events_take_spare(&pinned->events, device);

        tn_lock_release(&pinned->lock);
        if (!event) {
            st = tn_pinned_event_create(device, &event);
        }
        if (st == TARN_OK) {
            event->next = *list_out;
            *list_out = event;
            st = device->ops->event_record(device, event->event, uses[i].stream);
        }
        if (st) {
            (void)pinned_failed(device, st, "recording an event", error);
        }
    }
    return st;
}

/* Queues the block's events, for which it waits. With the lock. */
static void block_wait(struct tarn_pinned *pinned, struct tn_pinned_block *block,
                       struct tn_pinned_event *list)
{
    block->uses.count = 0;
    while (list) {
        struct tn_pinned_event *next = list->next;

        list->block = block;
        block->event_count++;
        tn_pinned_events_push(&pinned->events, list);
        list = next;
    }
}

static void events_give_up(struct tarn_pinned *pinned, struct tn_pinned_event *list)
{
    while (list) {
        struct tn_pinned_event *next = list->next;

        tn_pinned_events_put_spare(&pinned->events, list);
        list = next;
    }
}

/* The free can no longer fail: reports it with `stack`, 0 = unknown. With the lock. */
static void block_end(const struct tarn_pinned *pinned, struct tn_pinned_block *block,
                      uint64_t stack)
{
    if (stack != 0) {
        block_keep_stack(pinned, block, stack);
    }
    block_emit(pinned, block, TARN_ACTION_FREE_REQUESTED, block->requested);
}

/* Frees a block that streams used; its state is already TN_PINNED_WAITING, which prevents another
 * free. */
static enum tarn_status free_used(struct tarn_pinned *pinned, struct tn_pinned_block *block,
                                  uint64_t stack, struct tarn_error *error)
{
    struct tn_pinned_event *list = NULL;
    enum tarn_status st = events_record(pinned, block, &list, error);

    tn_lock_acquire(&pinned->lock);
    if (st == TARN_OK || pinned->catch_all) {
        block_end(pinned, block, stack);
    } else {
        stack_release(pinned, stack);
    }
    if (st == TARN_OK) {
        block_wait(pinned, block, list);
    } else {
        events_give_up(pinned, list);
        block->state = pinned->catch_all ? TN_PINNED_LOST : TN_PINNED_HANDED_OUT;
        pinned->stats.lost_blocks += pinned->catch_all;
        st = pinned->catch_all ? TARN_OK : st;
    }
    tn_lock_release(&pinned->lock);
    return st;
}

enum tarn_status tarn_pinned_free(struct tarn_pinned *pinned, void *memory,
                                  struct tarn_error *error)
{
    bool used = false;

    if (!memory) {
        return TARN_OK;
    }
    if (tn_fork_passed(&pinned->fork)) {
        return tn_fork_refuse(error, "the pinned allocator");
    }
    const uint64_t stack = stack_capture(pinned, TARN_CONTEXT_ALL);

    tn_lock_acquire(&pinned->lock);
    struct tn_pinned_block *block = block_find(pinned, memory);

    if (!block || block->memory.start != memory) {
        block = NULL;
        stack_release(pinned, stack);
    } else if (block->captured) {
        block_end(pinned, block, stack);
        block->state = TN_PINNED_OF_GRAPH;
        block->uses.count = 0;
        pinned->stats.graph_blocks++;
    } else if (block->uses.count > 0) {
        block->state = TN_PINNED_WAITING;
        used = true;
    } else {
        block_end(pinned, block, stack);
        block_cache(pinned, block);
    }
    tn_lock_release(&pinned->lock);
    if (!block) {
        return pointer_unknown(memory, error);
    }
    if (used) {
        return free_used(pinned, block, stack, error);
    }
    large_release(pinned);
    return TARN_OK;
}

/* ---- uses ---- */

static bool block_has_use(const struct tn_pinned_block *block, const struct tn_pinned_use *use)
{
    const struct tn_pinned_use *uses = block->uses.items;

    for (size_t i = 0; i < block->uses.count; i++) {
        if (uses[i].device == use->device && uses[i].stream == use->stream) {
            return true;
        }
    }
    return false;
}

static enum tarn_status use_add(struct tn_pinned_block *block, const struct tn_pinned_use *use,
                                struct tarn_error *error)
{
    if (block_has_use(block, use)) {
        return TARN_OK;
    }
    struct tn_pinned_use *added = tn_vec_push(&block->uses);

    if (!added) {
        return tn_fail_memory(error);
    }
    *added = *use;
    return TARN_OK;
}

enum tarn_status tarn_pinned_record_stream(struct tarn_pinned *pinned, void *memory,
                                           struct tarn_device *device, tarn_stream stream,
                                           struct tarn_error *error)
{
    if (tn_fork_passed(&pinned->fork)) {
        return tn_fork_refuse(error, "the pinned allocator");
    }
    const struct tn_pinned_use use = {.device = device ? device : pinned->device, .stream = stream};
    uint64_t capture = 0;
    uint32_t count = 0;

    if (tn_stream_is_per_thread(use.device, stream)) {
        return tn_stream_refuse_per_thread(stream, error);
    }
    enum tarn_status st =
        use.device->ops->capture_info(use.device, stream, &capture, NULL, 0, &count);

    if (st) {
        return pinned_failed(use.device, st, "querying a capture", error);
    }
    tn_lock_acquire(&pinned->lock);
    struct tn_pinned_block *block = block_find(pinned, memory);

    if (!block) {
        st = pointer_unknown(memory, error);
    } else if (capture != 0) {
        block->captured = true;
    } else {
        st = use_add(block, &use, error);
    }
    tn_lock_release(&pinned->lock);
    return st;
}

void tarn_pinned_forget_graphs(struct tarn_pinned *pinned)
{
    if (tn_fork_passed(&pinned->fork)) {
        return;
    }
    tn_lock_acquire(&pinned->lock);
    for (const struct tn_tree_node *node = tn_tree_first(&pinned->blocks); node;
         node = tn_tree_next(node)) {
        if (tn_pinned_block_of(node)->state == TN_PINNED_OF_GRAPH) {
            block_cache(pinned, tn_pinned_block_of(node));
        }
    }
    pinned->stats.graph_blocks = 0;
    tn_lock_release(&pinned->lock);
    large_release(pinned);
}

enum tarn_status tarn_pinned_empty_cache(struct tarn_pinned *pinned, struct tarn_error *error)
{
    if (tn_fork_passed(&pinned->fork)) {
        return tn_fork_refuse(error, "the pinned allocator");
    }
    const enum tarn_status st = process_events(pinned, error);

    return st ? st : blocks_release(pinned, 0, error);
}

/* ---- lifetime ---- */

enum tarn_status tarn_pinned_create(struct tarn_device *device, const struct tarn_config *config,
                                    struct tarn_pinned **pinned_out, struct tarn_error *error)
{
    struct tarn_config used;
    const enum tarn_status st = tn_config_read(config, &used, error);
    struct tarn_pinned *pinned = st ? NULL : tn_host_alloc_zero(sizeof *pinned);

    if (!pinned) {
        return st ? st : tn_fail_memory(error);
    }
    pinned->device = device;
    pinned->background = used.pinned_use_background_threads;
    pinned->catch_all = used.pinned_free_catch_all;
    pinned->max_cached = used.pinned_max_cached_size;
    pinned->max_rounded = used.pinned_max_round_threshold < used.pinned_max_cached_size
                              ? used.pinned_max_round_threshold
                              : used.pinned_max_cached_size;
    tn_pinned_source_init(&pinned->source, device, &used);
    tn_lock_init(&pinned->lock, TN_LOCK_ALLOCATOR);
    tn_tree_init(&pinned->blocks, block_compare, NULL);
    tn_fork_watch_init(&pinned->fork, NULL);
    *pinned_out = pinned;
    return TARN_OK;
}

void tarn_pinned_destroy(struct tarn_pinned *pinned)
{
    if (!pinned || tn_fork_passed(&pinned->fork)) {
        return;
    }
    tn_fork_watch_fini(&pinned->fork);
    if (pinned->thread_runs) {
        atomic_store_explicit(&pinned->stops, true, memory_order_relaxed);
        (void)pthread_join(pinned->thread, NULL);
    }
    tarn_pinned_set_sink(pinned, NULL);
    tn_pinned_events_fini(&pinned->events);
    while (pinned->blocks.root) {
        struct tn_pinned_block *block = tn_pinned_block_of(pinned->blocks.root);

        tn_tree_remove(&pinned->blocks, &block->node);
        (void)tn_pinned_source_give(&pinned->source, &block->memory);
        block_free(block);
    }
    tn_pinned_source_fini(&pinned->source);
    tn_lock_fini(&pinned->lock);
    tn_host_free(pinned, sizeof *pinned);
}

/* ---- the sink ---- */

void tarn_pinned_set_sink(struct tarn_pinned *pinned, const struct tarn_sink *sink)
{
    if (tn_fork_passed(&pinned->fork)) {
        return;
    }
    tn_lock_acquire(&pinned->lock);
    for (const struct tn_tree_node *node = tn_tree_first(&pinned->blocks); node;
         node = tn_tree_next(node)) {
        block_keep_stack(pinned, tn_pinned_block_of(node), 0);
    }
    pinned->sink = sink ? *sink : (struct tarn_sink){0};
    tn_lock_release(&pinned->lock);
}

/* ---- walking ---- */

/* False ends the walk. */
static bool block_show(const struct tn_pinned_block *block, const struct tarn_walker *walker)
{
    const bool active = block->state != TN_PINNED_CACHED;
    const struct tarn_block_info info = {
        .address = block_start(block),
        .size = block->memory.size,
        .requested_size = block->requested,
        .stack = block->stack,
        .allocated = block->state == TN_PINNED_HANDED_OUT,
        .active = active,
    };
    const struct tarn_segment_info segment = {
        .address = info.address,
        .total_size = info.size,
        .allocated_size = info.allocated ? info.size : 0,
        .active_size = active ? info.size : 0,
        .requested_size = active ? info.requested_size : 0,
        .is_large = info.size > TN_SMALL_SIZE,
    };

    return (!walker->segment || walker->segment(walker->context, &segment)) &&
           (!walker->block || walker->block(walker->context, &info));
}

enum tarn_status tn_pinned_look(struct tarn_pinned *pinned, const struct tn_look *look,
                                struct tarn_error *error)
{
    bool more = true;

    if (tn_fork_passed(&pinned->fork)) {
        return tn_fork_refuse(error, "the pinned allocator");
    }
    tn_lock_acquire(&pinned->lock);
    look->begin(look->context);
    for (const struct tn_tree_node *node = tn_tree_first(&pinned->blocks); node && more;
         node = tn_tree_next(node)) {
        more = block_show(tn_pinned_block_of(node), &look->walker);
    }
    (void)look->end(look->context);
    tn_lock_release(&pinned->lock);
    return TARN_OK;
}

const void *tn_pinned_stack_keeper(struct tarn_pinned *pinned)
{
    if (tn_fork_passed(&pinned->fork)) {
        return NULL;
    }
    tn_lock_acquire(&pinned->lock);
    const void *keeper = pinned->sink.capture ? pinned->sink.context : NULL;

    tn_lock_release(&pinned->lock);
    return keeper;
}

int tn_pinned_ordinal(const struct tarn_pinned *pinned)
{
    return pinned->device->ordinal;
}

static void look_begin(void *context)
{
    (void)context;
}

static bool look_end(void *context)
{
    (void)context;
    return false;
}

void tarn_pinned_walk(struct tarn_pinned *pinned, const struct tarn_walker *walker)
{
    const struct tn_look look = {.begin = look_begin, .walker = *walker, .end = look_end};

    if (tn_pinned_look(pinned, &look, NULL)) {
        return; /* a forked child walks nothing */
    }
}

void tarn_pinned_get_stats(struct tarn_pinned *pinned, struct tarn_pinned_stats *stats_out)
{
    struct tarn_pinned_stats stats = {0};

    if (!tn_fork_passed(&pinned->fork)) {
        tn_lock_acquire(&pinned->lock);
        stats = pinned->stats;
        tn_lock_release(&pinned->lock);
    }
    tn_sized_write(stats_out, stats_out->struct_size, &stats, sizeof stats);
}

void tarn_pinned_reset_peak_stats(struct tarn_pinned *pinned)
{
    if (tn_fork_passed(&pinned->fork)) {
        return;
    }
    tn_lock_acquire(&pinned->lock);
    tn_pinned_stats_reset_peaks(&pinned->stats);
    tn_lock_release(&pinned->lock);
}

void tarn_pinned_reset_accumulated_stats(struct tarn_pinned *pinned)
{
    if (tn_fork_passed(&pinned->fork)) {
        return;
    }
    tn_lock_acquire(&pinned->lock);
    tn_pinned_stats_reset_accumulated(&pinned->stats);
    tn_lock_release(&pinned->lock);
}
