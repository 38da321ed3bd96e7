/* SPDX-License-Identifier: MIT */
/*
 * Implements tarn/observer.h: the live allocations of others, ordered by address, and the events
 * that a history gets of them.
 *
 * Invariant: allocated and allocations are the sum and the number of the records.
 *
 * Locks: `lock` (rank TN_LOCK_ALLOCATOR) guards the records and the counters, and is held while the
 * history receives an event, so that its order is that of the reports. Stacks are captured before
 * it is taken. Cost of a report: O(log n), one host allocation.
 */
#include "capture/observer.h"

#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/lock.h"
#include "base/os_fork.h"
#include "base/tree.h"

#include <string.h>

struct tarn_observer {
    struct tn_fork_watch fork;
    int device;
    struct tarn_history *history; /* NULL = none */
    struct tarn_sink sink;        /* all zero without a history */
    struct tn_lock lock;
    struct tn_tree records; /* by address */
    struct tarn_observer_stats stats;
};

struct record {
    struct tn_tree_node node;
    struct tarn_observed memory;
    uint64_t stack; /* a reference; 0 = none */
};

static struct record *record_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct record, node);
}

static int record_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(record_of(a)->memory.address, record_of(b)->memory.address);
}

enum tarn_status tarn_observer_create(int device, struct tarn_history *history,
                                      enum tarn_context_level level,
                                      struct tarn_observer **observer_out, struct tarn_error *error)
{
    *observer_out = NULL;
    if (device < 0) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "an observer needs a device, not %d",
                       device);
    }
    struct tarn_observer *observer =
        tn_os_forks_watch() ? tn_host_alloc_zero(sizeof *observer) : NULL;

    if (!observer) {
        return tn_fail_memory(error);
    }
    observer->device = device;
    observer->history = history;
    if (history) {
        tarn_history_get_sink(history, level, &observer->sink);
    }
    tn_lock_init(&observer->lock, TN_LOCK_ALLOCATOR);
    tn_tree_init(&observer->records, record_compare, NULL);
    tn_fork_watch_init(&observer->fork, NULL);
    *observer_out = observer;
    return TARN_OK;
}

/* ---- events ---- */

/* A reference to the calling thread's stack, 0 = none. */
static uint64_t stack_capture(struct tarn_observer *observer, enum tarn_context_level level)
{
    return observer->sink.capture && level <= observer->sink.level
               ? observer->sink.capture(observer->sink.context, level)
               : 0;
}

static void stack_drop(struct tarn_observer *observer, uint64_t stack)
{
    if (stack != 0) {
        observer->sink.release(observer->sink.context, stack);
    }
}

/* The lock is held. */
static void emit(struct tarn_observer *observer, enum tarn_action action,
                 const struct tarn_observed *memory, uint64_t stack)
{
    if (!observer->sink.receive) {
        return;
    }
    const struct tarn_trace_event event = {
        .action = action,
        .device = observer->device,
        .same_time = action == TARN_ACTION_FREE_COMPLETED,
        .address = memory->address,
        .size = memory->size,
        .stream = memory->stream,
        .stack = stack,
        .compile_context = tarn_get_compile_context(),
        .user_metadata = memory->what ? memory->what : "",
    };

    observer->sink.receive(observer->sink.context, &event);
}

/* ---- records; the lock is held ---- */

static struct record *record_find(struct tarn_observer *observer, tarn_ptr address)
{
    const struct record key = {.memory = {.address = address}};
    struct tn_tree_node *node = tn_tree_find(&observer->records, &key.node);

    return node ? record_of(node) : NULL;
}

static void record_enter(struct tarn_observer *observer, struct record *record)
{
    struct tarn_observer_stats *stats = &observer->stats;
    const uint64_t shown = observer->sink.level >= TARN_CONTEXT_ALLOC ? record->stack : 0;

    tn_tree_insert(&observer->records, &record->node);
    stats->allocations++;
    stats->allocations_all++;
    stats->allocated += record->memory.size;
    stats->allocated_all += record->memory.size;
    if (stats->allocated > stats->allocated_peak) {
        stats->allocated_peak = stats->allocated;
    }
    emit(observer, TARN_ACTION_SEGMENT_ALLOC, &record->memory, shown);
    emit(observer, TARN_ACTION_ALLOC, &record->memory, shown);
}

/* The caller releases the record. */
static void record_leave(struct tarn_observer *observer, struct record *record, uint64_t stack)
{
    tn_tree_remove(&observer->records, &record->node);
    observer->stats.allocations--;
    observer->stats.allocated -= record->memory.size;
    emit(observer, TARN_ACTION_FREE_REQUESTED, &record->memory, stack);
    emit(observer, TARN_ACTION_FREE_COMPLETED, &record->memory, stack);
    emit(observer, TARN_ACTION_SEGMENT_FREE, &record->memory, stack);
    stack_drop(observer, record->stack);
}

static void record_release(struct record *record)
{
    tn_host_free(record, record ? sizeof *record : 0);
}

/* ---- reports ---- */

enum tarn_status tarn_observer_alloc(struct tarn_observer *observer,
                                     const struct tarn_observed *memory)
{
    if (tn_fork_passed(&observer->fork)) {
        return TARN_ERR_STATE;
    }
    if (memory->address == 0 || memory->size == 0) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    struct record *record = tn_host_alloc(sizeof *record);

    if (!record) {
        return TARN_ERR_HOST_MEMORY;
    }
    *record =
        (struct record){.memory = *memory, .stack = stack_capture(observer, TARN_CONTEXT_STATE)};
    tn_lock_acquire(&observer->lock);
    struct record *stale = record_find(observer, memory->address);

    if (stale) {
        record_leave(observer, stale, 0);
    }
    record_enter(observer, record);
    tn_lock_release(&observer->lock);
    record_release(stale);
    return TARN_OK;
}

enum tarn_status tarn_observer_free(struct tarn_observer *observer, tarn_ptr address,
                                    struct tarn_observed *freed_out)
{
    if (tn_fork_passed(&observer->fork)) {
        return TARN_ERR_STATE;
    }
    const uint64_t stack = stack_capture(observer, TARN_CONTEXT_ALL);

    tn_lock_acquire(&observer->lock);
    struct record *record = record_find(observer, address);

    if (record) {
        record_leave(observer, record, stack);
    }
    stack_drop(observer, stack);
    tn_lock_release(&observer->lock);
    if (record && freed_out) {
        *freed_out = record->memory;
    }
    record_release(record);
    return record ? TARN_OK : TARN_ERR_NOT_FOUND;
}

void tarn_observer_free_all(struct tarn_observer *observer, tarn_observed_visitor visit,
                            void *context)
{
    struct tn_tree_node *node = NULL;

    do {
        if (tn_fork_passed(&observer->fork)) {
            return;
        }
        tn_lock_acquire(&observer->lock);
        node = tn_tree_first(&observer->records);
        if (node) {
            record_leave(observer, record_of(node), 0);
        }
        tn_lock_release(&observer->lock);
        if (node && visit) {
            visit(context, &record_of(node)->memory);
        }
        if (node) {
            record_release(record_of(node));
        }
    } while (node);
}

void tarn_observer_destroy(struct tarn_observer *observer)
{
    if (!observer || tn_fork_passed(&observer->fork)) {
        return;
    }
    for (struct tn_tree_node *node = tn_tree_first(&observer->records); node;
         node = tn_tree_first(&observer->records)) {
        tn_tree_remove(&observer->records, node);
        stack_drop(observer, record_of(node)->stack);
        record_release(record_of(node));
    }
    tn_fork_watch_fini(&observer->fork);
    tn_lock_fini(&observer->lock);
    tn_host_free(observer, sizeof *observer);
}

void tarn_observer_oom(struct tarn_observer *observer, uint64_t size, tarn_stream stream,
                       uint64_t device_free)
{
    const struct tarn_observed request = {.address = device_free, .size = size, .stream = stream};

    if (tn_fork_passed(&observer->fork)) {
        return;
    }
    const uint64_t stack = stack_capture(observer, TARN_CONTEXT_STATE);

    tn_lock_acquire(&observer->lock);
    observer->stats.failures++;
    emit(observer, TARN_ACTION_OOM, &request, stack);
    stack_drop(observer, stack);
    tn_lock_release(&observer->lock);
}

/* ---- looking ---- */

bool tarn_observer_find(struct tarn_observer *observer, tarn_ptr address,
                        struct tarn_observed *found_out)
{
    const struct record key = {.memory = {.address = address}};
    bool found = false;

    if (tn_fork_passed(&observer->fork)) {
        return false;
    }
    tn_lock_acquire(&observer->lock);
    const struct tn_tree_node *node = tn_tree_find_at_most(&observer->records, &key.node);

    if (node && address - record_of(node)->memory.address < record_of(node)->memory.size) {
        *found_out = record_of(node)->memory;
        found = true;
    }
    tn_lock_release(&observer->lock);
    return found;
}

void tarn_observer_get_stats(struct tarn_observer *observer, struct tarn_observer_stats *stats_out)
{
    const uint32_t size = stats_out->struct_size;
    struct tarn_observer_stats stats = {.struct_size = size};

    if (!tn_fork_passed(&observer->fork)) {
        tn_lock_acquire(&observer->lock);
        stats = observer->stats;
        tn_lock_release(&observer->lock);
    }
    stats.struct_size = size;
    memcpy(stats_out, &stats, size < sizeof stats ? size : sizeof stats);
}

int tn_observer_ordinal(const struct tarn_observer *observer)
{
    return observer->device;
}

struct tarn_history *tn_observer_history(const struct tarn_observer *observer)
{
    return observer->history;
}

static bool record_show(const struct tarn_observer *observer, const struct record *record,
                        const struct tarn_walker *walker)
{
    const struct tarn_observed *memory = &record->memory;
    const uint64_t stack = observer->sink.level >= TARN_CONTEXT_STATE ? record->stack : 0;
    const struct tarn_segment_info segment = {
        .address = memory->address,
        .total_size = memory->size,
        .allocated_size = memory->size,
        .active_size = memory->size,
        .requested_size = memory->size,
        .stream = memory->stream,
        .stack = stack,
        .is_large = true,
    };
    const struct tarn_block_info block = {
        .address = memory->address,
        .size = memory->size,
        .requested_size = memory->size,
        .stack = stack,
        .allocated = true,
        .active = true,
    };

    return walker->segment(walker->context, &segment) && walker->block(walker->context, &block);
}

enum tarn_status tn_observer_look(struct tarn_observer *observer, const struct tn_look *look,
                                  struct tarn_error *error)
{
    bool more = true;

    if (tn_fork_passed(&observer->fork)) {
        return tn_fork_refuse(error, "the observer");
    }
    tn_lock_acquire(&observer->lock);
    look->begin(look->context);
    for (struct tn_tree_node *node = tn_tree_first(&observer->records); node && more;
         node = tn_tree_next(node)) {
        more = record_show(observer, record_of(node), &look->walker);
    }
    (void)look->end(look->context);
    tn_lock_release(&observer->lock);
    return TARN_OK;
}
