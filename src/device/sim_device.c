/* SPDX-License-Identifier: MIT */
#include "device/sim_device.h"

#include "base/assertion.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/os_map.h"
#include "base/os_process.h"
#include "device/last_error.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#define DEFAULT_CAPACITY ((uint64_t)80 << 30)
#define DEFAULT_BASE     ((uint64_t)0x7f0000000000)

struct tn_sim *tn_sim_from(struct tarn_device *device)
{
    struct tn_sim *sim = device && device->ops == &tn_sim_ops ? tn_sim_of(device) : NULL;

    return sim && !tn_fork_passed(&sim->fork) ? sim : NULL;
}

enum tarn_status tn_sim_fail(struct tn_sim *sim, enum tarn_status status, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    tn_last_error_set(sim->id, format, args);
    va_end(args);
    sim->explained = true;
    return status;
}

enum tarn_status tn_sim_fail_memory(struct tn_sim *sim, uint64_t wanted)
{
    return tn_sim_fail(sim, TARN_ERR_OUT_OF_MEMORY,
                       "out of memory: %" PRIu64 " bytes wanted, %" PRIu64 " free", wanted,
                       tn_sim_space_room(&sim->space));
}

/* Does not take the lock, which a thread of the parent may have held. */
static TN_COLD enum tarn_status refuse_in_child(struct tn_sim *sim)
{
    return tn_sim_fail(sim, TARN_ERR_DEVICE,
                       "simulated device %d was opened before this process was forked, and does "
                       "not work in the child: open another there",
                       sim->base.ordinal);
}

enum tarn_status tn_sim_enter(struct tarn_device *device, enum tarn_sim_call call)
{
    struct tn_sim *sim = tn_sim_of(device);

    if (tn_fork_passed(&sim->fork)) {
        return refuse_in_child(sim);
    }
    tn_biased_lock_acquire(&sim->lock);
    sim->explained = false;
    const enum tarn_status st = tn_sim_fault_next(&sim->faults, call);
    if (st == TARN_OK) {
        return TARN_OK;
    }
    return tn_sim_fail(sim, st, "planned failure of %s, call %" PRIu64, tn_sim_call_name(call),
                       sim->faults.calls[call]);
}

enum tarn_status tn_sim_leave(struct tarn_device *device, enum tarn_status status)
{
    struct tn_sim *sim = tn_sim_of(device);

    if (tn_fork_passed(&sim->fork)) {
        return status;
    }
    tn_assert(tn_lock_is_held(&sim->lock));
    if (status != TARN_OK && status != TARN_ERR_NOT_READY) {
        sim->failures++;
        if (!sim->explained) {
            (void)tn_sim_fail(sim, status, "%s", tarn_status_text(status));
        }
    }
    tn_biased_lock_release(&sim->lock);
    return status;
}

/* Host memory for a range; a plain allocation's is an object, so that other processes can see it.
 */
static bool backing_take(enum tn_sim_kind kind, uint64_t size, void **host_out, int *object_out)
{
    void *host = tn_os_range_reserve(size, kind != TN_SIM_PLAIN);
    int object = -1;

    if (host && kind == TN_SIM_PLAIN) {
        object = tn_os_object_open(size);
        if (object < 0 || !tn_os_object_map(object, host, size)) {
            tn_os_object_close(object);
            tn_os_range_release(host, size);
            return false;
        }
    }
    *host_out = host;
    *object_out = object;
    return host != NULL;
}

enum tarn_status tn_sim_memory_take(struct tn_sim *sim, enum tn_sim_kind kind, uint64_t size,
                                    struct tn_sim_range **range_out)
{
    void *host = NULL;
    int object = -1;
    tarn_ptr there = 0;

    if (!tn_sim_space_charge(&sim->space, size)) {
        return tn_sim_fail_memory(sim, size);
    }
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    if (sim->backed && !backing_take(kind, size, &host, &object)) {
        goto out;
    }
    st = tn_sim_there_alloc(sim, size, &there);
    if (st == TARN_OK) {
        st = tn_sim_space_take(&sim->space, kind, size, range_out);
    }
    if (st == TARN_OK) {
        (*range_out)->host = host;
        (*range_out)->object = object;
        (*range_out)->there = there;
    }
out:
    if (st != TARN_OK) {
        (void)tn_sim_there_free(sim, there);
        tn_os_range_release(host, size);
        tn_os_object_close(object);
        tn_sim_space_refund(&sim->space, size);
    }
    return st;
}

void tn_sim_memory_give(struct tn_sim *sim, struct tn_sim_range *range)
{
    tn_assert(range->kind != TN_SIM_RESERVED); /* whose addresses sim_vmm.c releases */
    if (range->host) {
        tn_os_range_release(range->host, range->size);
        tn_os_object_close(range->object);
    }
    (void)tn_sim_there_free(sim, range->there);
    if (range->kind == TN_SIM_OPENED) { /* another device's memory */
        tn_host_free(range->opened, sizeof *range->opened);
    } else {
        tn_sim_space_refund(&sim->space, range->size);
    }
    tn_sim_space_give(&sim->space, range);
}

enum tarn_status tn_sim_op_alloc(struct tn_sim *sim, uint64_t size, tarn_ptr *address_out)
{
    struct tn_sim_range *range = NULL;

    if (size == 0) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "alloc of 0 bytes");
    }
    const enum tarn_status st = tn_sim_memory_take(sim, TN_SIM_PLAIN, size, &range);
    if (st == TARN_OK) {
        tn_assert(range);
        *address_out = range->start;
    }
    return st;
}

enum tarn_status tn_sim_op_free(struct tn_sim *sim, tarn_ptr address)
{
    struct tn_sim_range *range = tn_sim_space_find_start(&sim->space, address, TN_SIM_PLAIN);

    if (!range) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "free of %#" PRIx64 ", which is not allocated",
                           address);
    }
    const enum tarn_status st = tn_sim_there_free(sim, range->there);
    if (st == TARN_OK) {
        range->there = 0;
        tn_sim_memory_give(sim, range);
    }
    return st;
}

enum tarn_status tn_sim_op_memory_info(struct tn_sim *sim, uint64_t *free_out, uint64_t *total_out)
{
    *free_out = tn_sim_space_room(&sim->space);
    *total_out = sim->base.total_memory;
    return TARN_OK;
}

/* Only this process uses a simulated device. */
static enum tarn_status sim_processes(struct tarn_device *device, tarn_process_visitor visit,
                                      void *context, int *number_out)
{
    struct tn_sim *sim = tn_sim_of(device);

    if (tn_fork_passed(&sim->fork)) {
        return refuse_in_child(sim);
    }
    tn_biased_lock_acquire(&sim->lock);
    const uint64_t used = device->total_memory - tn_sim_space_room(&sim->space);

    tn_biased_lock_release(&sim->lock);
    *number_out = device->ordinal;
    if (used > 0) {
        visit(context, tn_os_process_id(), used);
    }
    return TARN_OK;
}

/* Converts the streams' status for an unknown event to that of the table. */
static enum tarn_status event_status(struct tn_sim *sim, enum tarn_status st, uint64_t event)
{
    if (st != TARN_ERR_NOT_FOUND) {
        return st;
    }
    return tn_sim_fail(sim, TARN_ERR_DEVICE, "no event %#" PRIx64, event);
}

enum tarn_status tn_sim_op_event_create(struct tn_sim *sim, tn_event_handle *event_out)
{
    return tn_sim_event_create(&sim->streams, event_out);
}

enum tarn_status tn_sim_op_event_destroy(struct tn_sim *sim, tn_event_handle event)
{
    return event_status(sim, tn_sim_event_destroy(&sim->streams, event), event);
}

enum tarn_status tn_sim_op_event_record(struct tn_sim *sim, tn_event_handle event,
                                        tarn_stream handle)
{
    struct tn_sim_stream *stream = tn_sim_stream_get(&sim->streams, handle);

    if (!stream) {
        return TARN_ERR_HOST_MEMORY;
    }
    return event_status(sim, tn_sim_event_record(&sim->streams, event, stream), event);
}

enum tarn_status tn_sim_op_event_query(struct tn_sim *sim, tn_event_handle event)
{
    return event_status(sim, tn_sim_event_query(&sim->streams, event), event);
}

enum tarn_status tn_sim_op_event_wait(struct tn_sim *sim, tn_event_handle event)
{
    return event_status(sim, tn_sim_event_wait(&sim->streams, event), event);
}

enum tarn_status tn_sim_op_stream_wait(struct tn_sim *sim, tarn_stream handle)
{
    struct tn_sim_stream *stream = tn_sim_stream_find(&sim->streams, handle);

    if (stream) {
        tn_sim_stream_wait(&sim->streams, stream);
    }
    return TARN_OK;
}

enum tarn_status tn_sim_op_stream_wait_event(struct tn_sim *sim, tarn_stream handle,
                                             tn_event_handle event)
{
    struct tn_sim_stream *stream = tn_sim_stream_get(&sim->streams, handle);

    if (!stream) {
        return TARN_ERR_HOST_MEMORY;
    }
    const enum tarn_status st = tn_sim_stream_wait_event(&sim->streams, stream, event);
    if (st == TARN_ERR_STATE) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE,
                           "stream %#" PRIx64 " is in a capture and cannot wait for work that is "
                           "not in it",
                           handle);
    }
    return event_status(sim, st, event);
}

/* Any number is a stream. */
static enum tarn_status sim_stream_check(struct tarn_device *device, tarn_stream stream)
{
    (void)device;
    (void)stream;
    return TARN_OK;
}

enum tarn_status tn_sim_op_stream_create(struct tn_sim *sim, tarn_stream *stream_out)
{
    const struct tn_sim_stream *stream = tn_sim_stream_create(&sim->streams);

    if (!stream) {
        return TARN_ERR_HOST_MEMORY;
    }
    *stream_out = stream->handle;
    return TARN_OK;
}

enum tarn_status tn_sim_op_stream_destroy(struct tn_sim *sim, tarn_stream stream)
{
    return tn_sim_stream_destroy(&sim->streams, stream)
               ? TARN_OK
               : tn_sim_fail(sim, TARN_ERR_DEVICE, "no stream %#" PRIx64 " was created", stream);
}

enum tarn_status tn_sim_op_device_wait(struct tn_sim *sim)
{
    tn_sim_streams_wait(&sim->streams);
    return TARN_OK;
}

/* Copies as many nodes as fit. */
static void nodes_copy(tn_graph_node *to, uint32_t capacity, const tn_graph_node *from,
                       uint32_t count)
{
    const uint32_t kept = count < capacity ? count : capacity;

    if (kept > 0) {
        memcpy(to, from, kept * sizeof *to);
    }
}

static enum tarn_status sim_capture_info(struct tarn_device *device, tarn_stream handle,
                                         uint64_t *capture_out, tn_graph_node *nodes,
                                         uint32_t capacity, uint32_t *count_out)
{
    struct tn_sim *sim = tn_sim_of(device);
    const enum tarn_status st = tn_sim_enter(device, TARN_SIM_CAPTURE_INFO);

    if (st == TARN_OK) {
        const struct tn_sim_stream *stream = tn_sim_stream_find(&sim->streams, handle);

        *capture_out = stream ? stream->mark.capture : 0;
        *count_out = stream ? (uint32_t)stream->mark.nodes.count : 0;
        nodes_copy(nodes, capacity, stream ? stream->mark.nodes.items : NULL, *count_out);
    }
    return tn_sim_leave(device, st);
}

enum tarn_status tn_sim_op_graph_node_parents(struct tn_sim *sim, tn_graph_node node,
                                              tn_graph_node *nodes, uint32_t capacity,
                                              uint32_t *count_out)
{
    const tn_graph_node *parents = NULL;

    if (!tn_sim_graph_parents(&sim->streams.graphs, node, &parents, count_out)) {
        return tn_sim_fail(sim, TARN_ERR_DEVICE, "no graph under capture has a node %#" PRIx64,
                           node);
    }
    nodes_copy(nodes, capacity, parents, *count_out);
    return TARN_OK;
}

static const char *sim_last_error(struct tarn_device *device)
{
    return tn_last_error_get(tn_sim_of(device)->id);
}

static void sim_destroy(struct tarn_device *device)
{
    struct tn_sim *sim = tn_sim_of(device);

    if (tn_fork_passed(&sim->fork)) {
        return; /* its state may be inconsistent */
    }
    tn_fork_watch_fini(&sim->fork);
    tn_sim_pool_fini(sim);
    tn_sim_vmm_fini(sim);
    tn_sim_host_fini(&sim->host);
    for (;;) {
        struct tn_sim_range *range = tn_sim_space_first(&sim->space);

        if (!range) {
            break;
        }
        tn_sim_memory_give(sim, range);
    }
    tn_sim_space_fini(&sim->space);
    tn_sim_streams_fini(&sim->streams);
    tn_biased_lock_fini(&sim->lock);
    tn_host_free(sim, sizeof *sim);
}

/* Each call takes the lock, counts and may fail as planned before it does its work. */
#define TN_OP_DEVICE struct tarn_device *device
#define TN_OP_SELF   tn_sim_of(device)
#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments)                                   \
    static enum tarn_status sim_##name parameters                                                  \
    {                                                                                              \
        enum tarn_status st = tn_sim_enter(device, TARN_SIM_##NAME);                               \
                                                                                                   \
        if (st == TARN_OK) {                                                                       \
            st = tn_sim_op_##name arguments;                                                       \
        }                                                                                          \
        return tn_sim_leave(device, st);                                                           \
    }
#include "device/device_ops.def"
#undef TN_DEVICE_OP
#undef TN_OP_SELF
#undef TN_OP_DEVICE

const struct tn_device_ops tn_sim_ops = {
    .name = "sim",
#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments) .name = sim_##name,
#include "device/device_ops.def"
#undef TN_DEVICE_OP
    .processes = sim_processes,
    .stream_check = sim_stream_check,
    .capture_info = sim_capture_info,
    .copy = tn_sim_copy,
    .now_ns = tarn_sim_now_ns,
    .last_error = sim_last_error,
    .destroy = sim_destroy,
};

/* The caller's options with defaults filled in. */
static enum tarn_status options_read(const struct tarn_sim_options *given,
                                     struct tarn_sim_options *options_out, struct tarn_error *error)
{
    struct tarn_sim_options options = {.struct_size = sizeof options};

    if (given && given->struct_size < sizeof given->struct_size) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "struct tarn_sim_options: struct_size is not set");
    }
    if (given) {
        memcpy(&options, given,
               given->struct_size < sizeof options ? given->struct_size : sizeof options);
    }
    options.capacity = options.capacity ? options.capacity : DEFAULT_CAPACITY;
    options.base_address = options.base_address ? options.base_address : DEFAULT_BASE;
    if (options.base_address % TN_SIM_ALIGNMENT != 0 || options.base_address >= TN_SIM_SPACE_END) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "base address %#" PRIx64 " is not a multiple of 2 MiB below 2^57",
                       options.base_address);
    }
    if (options.memory && (options.backed || tn_sim_from(options.memory))) {
        return tn_fail(
            error, TARN_ERR_INVALID_ARGUMENT,
            "the memory of a simulated device comes from the host or a GPU, not from both and not "
            "from another simulated device");
    }
    if (options.ordinal < 0) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "device number %d is negative",
                       options.ordinal);
    }
    *options_out = options;
    return TARN_OK;
}

/* Initializes the fields of a new device except the lock. */
static void sim_init(struct tn_sim *sim, const struct tarn_sim_options *options)
{
    sim->base = (struct tarn_device){.ops = &tn_sim_ops,
                                     .ordinal = options->ordinal,
                                     .total_memory = options->capacity,
                                     .granularity = TN_SIM_ALIGNMENT};
    sim->id = tn_last_error_new_device();
    sim->backed = options->backed;
    sim->memory = options->memory;
    tn_sim_space_init(&sim->space, options->base_address, options->capacity);
    tn_sim_streams_init(&sim->streams, options->manual_events);
    tn_sim_vmm_init(&sim->vmm);
    tn_sim_pool_init(&sim->pool);
}

enum tarn_status tarn_sim_open(const struct tarn_sim_options *given,
                               struct tarn_device **device_out, struct tarn_error *error)
{
    struct tarn_sim_options options = {.struct_size = sizeof options};
    enum tarn_status st = options_read(given, &options, error);

    if (st != TARN_OK) {
        return st;
    }
    struct tn_sim *sim = tn_os_forks_watch() ? tn_host_alloc_zero(sizeof *sim) : NULL;
    if (!sim) {
        return tn_fail_memory(error);
    }
    tn_biased_lock_init(&sim->lock, TN_LOCK_DEVICE);
    sim_init(sim, &options);
    tn_fork_watch_init(&sim->fork, NULL);
    *device_out = &sim->base;
    return TARN_OK;
}
