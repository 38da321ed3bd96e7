/* SPDX-License-Identifier: MIT */
#include "base/bits.h"
#include "base/host_mem.h"
#include "device/cuda_device.h"

#include <string.h>

enum {
    FLAG_MEMORY = 64 << 10 /* whole pages, also where a page has 64 KiB: nobody else writes them */
};

_Static_assert(TN_CUDA_FLAGS * sizeof(uint32_t) <= FLAG_MEMORY, "the flags fit");

/* ---- slots ---- */

static uint32_t chunk_size(uint32_t chunk)
{
    return (uint32_t)TN_CUDA_EVENTS_FIRST << (chunk > 0 ? chunk - 1 : 0);
}

static struct tn_cuda_event *slot_at(const struct tn_cuda_events *events, uint32_t index)
{
    const uint32_t chunk =
        index < TN_CUDA_EVENTS_FIRST ? 0 : tn_log2_floor(index / TN_CUDA_EVENTS_FIRST) + 1;

    return &events->chunks[chunk][chunk > 0 ? index - chunk_size(chunk) : index];
}

/* NULL for a handle that is no event's. */
static struct tn_cuda_event *event_find(const struct tn_cuda_events *events, tn_event_handle handle)
{
    const uint32_t count = atomic_load_explicit(&events->slot_count, memory_order_acquire);
    struct tn_cuda_event *event =
        handle > 0 && handle <= count ? slot_at(events, (uint32_t)handle - 1) : NULL;

    return event && event->driver ? event : NULL;
}

/* The same for an operation, which an unknown handle fails. */
static struct tn_cuda_event *event_get(struct tn_cuda_call *call, tn_event_handle handle)
{
    struct tn_cuda_event *event = event_find(&call->cuda->events, handle);

    if (!event) {
        tn_cuda_refuse(call, "there is no event %llu", (unsigned long long)handle);
    }
    return event;
}

/* One more chunk of unused slots. The lock is held. False: no host memory, or no more handles. */
static bool slots_add(struct tn_cuda_events *events)
{
    const uint32_t begin = atomic_load_explicit(&events->slot_count, memory_order_relaxed);
    uint32_t chunk = 0;

    while (events->chunks[chunk]) {
        chunk++;
    }
    const uint32_t count = chunk_size(chunk);
    struct tn_cuda_event *added =
        chunk < TN_CUDA_EVENT_CHUNKS ? tn_host_alloc_zero(count * sizeof *added) : NULL;

    if (!added) {
        return false;
    }
    for (uint32_t i = 0; i + 1 < count; i++) {
        added[i].next_free = begin + i + 2;
    }
    events->chunks[chunk] = added;
    events->first_free = begin + 1;
    atomic_store_explicit(&events->slot_count, begin + count, memory_order_release);
    return true;
}

/* The handle of a slot that is nobody else's; 0: no host memory. */
static uint32_t slot_acquire(struct tn_cuda_events *events)
{
    uint32_t handle = 0;

    tn_lock_acquire(&events->lock);
    if (events->first_free || slots_add(events)) {
        handle = events->first_free;
        events->first_free = slot_at(events, handle - 1)->next_free;
    }
    tn_lock_release(&events->lock);
    return handle;
}

static void slot_release(struct tn_cuda_events *events, uint32_t handle)
{
    tn_lock_acquire(&events->lock);
    slot_at(events, handle - 1)->next_free = events->first_free;
    events->first_free = handle;
    tn_lock_release(&events->lock);
}

/* ---- whether flags pay ---- */

/* The last recording is over: was it asked more often than a flag costs? Others may count at the
 * same time, and one of them be lost: it is an average. */
static void recording_count(struct tn_cuda_events *events, struct tn_cuda_event *event)
{
    int balance = atomic_load_explicit(&events->balance, memory_order_relaxed);

    if (event->counted) {
        return;
    }
    event->counted = true;
    balance += event->asked < TN_CUDA_BALANCE_MAX ? (int)event->asked : TN_CUDA_BALANCE_MAX;
    balance -= TN_CUDA_FLAG_WORTH;
    if (balance > TN_CUDA_BALANCE_MAX) {
        balance = TN_CUDA_BALANCE_MAX;
    } else if (balance < -TN_CUDA_BALANCE_MAX) {
        balance = -TN_CUDA_BALANCE_MAX;
    }
    atomic_store_explicit(&events->balance, balance, memory_order_relaxed);
}

/* ---- flags ---- */

/* Pins memory for the flags. The lock is held. NULL: there is none. */
static _Atomic uint32_t *flags_open(struct tn_cuda_call *call)
{
    struct tn_cuda_events *events = &call->cuda->events;
    const struct tn_cuda_driver *driver = &call->cuda->driver;
    void *memory =
        driver->cuStreamWriteValue32_v2 ? tn_host_alloc_aligned(FLAG_MEMORY, FLAG_MEMORY) : NULL;

    if (!memory) {
        return NULL;
    }
    memset(memory, 0, FLAG_MEMORY);
    if (driver->cuMemHostRegister_v2(memory, FLAG_MEMORY, TN_CU_HOST_PORTABLE) == TN_CU_SUCCESS) {
        if (driver->cuMemHostGetDevicePointer_v2(&events->address, memory, 0) == TN_CU_SUCCESS) {
            return memory;
        }
        (void)driver->cuMemHostUnregister(memory);
    }
    tn_host_free(memory, FLAG_MEMORY);
    return NULL;
}

/* The flags, once they pay. NULL: they cannot be had. */
static _Atomic uint32_t *flags_get(struct tn_cuda_call *call)
{
    struct tn_cuda_events *events = &call->cuda->events;
    _Atomic uint32_t *flags = atomic_load_explicit(&events->flags, memory_order_acquire);

    if (flags) {
        return flags;
    }
    tn_lock_acquire(&events->lock);
    if (!events->flags_tried) {
        events->flags_tried = true;
        atomic_store_explicit(&events->flags, flags_open(call), memory_order_release);
    }
    flags = atomic_load_explicit(&events->flags, memory_order_relaxed);
    tn_lock_release(&events->lock);
    return flags;
}

/* Whether all that was queued for a slot's flag is written. */
static bool flag_is_set(_Atomic uint32_t *flags, tn_event_handle handle,
                        const struct tn_cuda_event *event)
{
    return atomic_load_explicit(&flags[handle - 1], memory_order_acquire) == event->written;
}

/* A graph would get the write as a node. */
static bool is_captured(const struct tn_cuda_driver *driver, tarn_stream stream)
{
    int status = TN_CU_CAPTURE_NONE;

    return driver->cuStreamIsCapturing(stream, &status) != TN_CU_SUCCESS ||
           status != TN_CU_CAPTURE_NONE;
}

/* Queues the write behind the event that has just been recorded on the stream. */
static void flag_write(struct tn_cuda_call *call, tn_event_handle handle,
                       struct tn_cuda_event *event, tarn_stream stream)
{
    struct tn_cuda_events *events = &call->cuda->events;
    _Atomic uint32_t *flags = handle <= TN_CUDA_FLAGS ? flags_get(call) : NULL;

    if (!flags || !flag_is_set(flags, handle, event) || is_captured(&call->cuda->driver, stream)) {
        return;
    }
    if (call->cuda->driver.cuStreamWriteValue32_v2(stream,
                                                   events->address + (handle - 1) * sizeof *flags,
                                                   event->written + 1, 0) == TN_CU_SUCCESS) {
        event->written++;
        event->flagged = true;
    } else { /* not on this stream, or not on this GPU: the driver is asked for a while */
        atomic_store_explicit(&events->balance, -TN_CUDA_BALANCE_MAX, memory_order_relaxed);
    }
}

/* ---- the table's functions ---- */

/* Without timing an event costs the GPU almost nothing. A wait spins or sleeps according to the
 * context's scheduling flags: blocking-sync events would raise an interrupt each. */
void tn_cuda_op_event_create(struct tn_cuda_call *call, tn_event_handle *event_out)
{
    struct tn_cuda_events *events = &call->cuda->events;
    const uint32_t handle = slot_acquire(events);
    uint64_t driver = 0;

    if (!handle) {
        call->status = TARN_ERR_HOST_MEMORY;
        return;
    }
    if (!tn_cuda_did(call, "cuEventCreate",
                     call->cuda->driver.cuEventCreate(&driver, TN_CU_EVENT_DISABLE_TIMING))) {
        slot_release(events, handle);
        return;
    }
    struct tn_cuda_event *event = slot_at(events, handle - 1);

    *event = (struct tn_cuda_event){.driver = driver, .written = event->written, .counted = true};
    *event_out = handle;
}

void tn_cuda_op_event_destroy(struct tn_cuda_call *call, tn_event_handle handle)
{
    struct tn_cuda_event *event = event_get(call, handle);

    if (!event) {
        return;
    }
    (void)tn_cuda_did(call, "cuEventDestroy", call->cuda->driver.cuEventDestroy_v2(event->driver));
    if (call->status == TARN_OK) { /* also when the driver has shut down */
        event->driver = 0;
        slot_release(&call->cuda->events, (uint32_t)handle);
    }
}

void tn_cuda_op_event_record(struct tn_cuda_call *call, tn_event_handle handle, tarn_stream stream)
{
    struct tn_cuda_events *events = &call->cuda->events;
    struct tn_cuda_event *event = event_get(call, handle);

    if (!event || !tn_cuda_did(call, "cuEventRecord",
                               call->cuda->driver.cuEventRecord(event->driver, stream))) {
        return;
    }
    recording_count(events, event);
    event->counted = false;
    event->flagged = false;
    event->asked = 0;
    if (atomic_load_explicit(&events->balance, memory_order_relaxed) > 0) {
        flag_write(call, handle, event, stream);
    }
}

void tn_cuda_op_event_query(struct tn_cuda_call *call, tn_event_handle handle)
{
    struct tn_cuda_event *event = event_get(call, handle);

    if (!event) {
        return;
    }
    (void)tn_cuda_did(call, "cuEventQuery", call->cuda->driver.cuEventQuery(event->driver));
    if (call->status == TARN_OK) {
        recording_count(&call->cuda->events, event);
    } else if (call->status == TARN_ERR_NOT_READY && !event->flagged) {
        event->asked++;
    }
}

enum tarn_status tn_cuda_event_query(struct tarn_device *device, tn_event_handle handle)
{
    struct tn_cuda *cuda = tn_cuda_from(device);
    struct tn_cuda_event *event =
        tn_fork_passed(&cuda->fork) ? NULL : event_find(&cuda->events, handle);
    struct tn_cuda_call call;

    if (event && event->flagged) {
        if (flag_is_set(atomic_load_explicit(&cuda->events.flags, memory_order_relaxed), handle,
                        event)) {
            recording_count(&cuda->events, event);
            return TARN_OK;
        }
        if (++event->asked % TN_CUDA_ASK_DRIVER != 0) {
            return TARN_ERR_NOT_READY;
        }
    }
    if (tn_cuda_begin(&call, device, TN_CUDA_GIVES)) {
        tn_cuda_op_event_query(&call, handle);
    }
    return tn_cuda_end(&call);
}

void tn_cuda_op_event_wait(struct tn_cuda_call *call, tn_event_handle handle)
{
    const struct tn_cuda_event *event = event_get(call, handle);

    if (event) {
        (void)tn_cuda_did(call, "cuEventSynchronize",
                          call->cuda->driver.cuEventSynchronize(event->driver));
    }
}

void tn_cuda_op_stream_wait_event(struct tn_cuda_call *call, tarn_stream stream,
                                  tn_event_handle handle)
{
    const struct tn_cuda_event *event = event_get(call, handle);

    if (event) {
        (void)tn_cuda_did(call, "cuStreamWaitEvent",
                          call->cuda->driver.cuStreamWaitEvent(stream, event->driver, 0));
    }
}

/* ---- of the device ---- */

void tn_cuda_events_init(struct tn_cuda_events *events)
{
    tn_lock_init(&events->lock, TN_LOCK_DEVICE);
    atomic_init(&events->slot_count, 0);
    atomic_init(&events->balance, TN_CUDA_FLAGS_TRIED * TN_CUDA_FLAG_WORTH);
    atomic_init(&events->flags, NULL);
}

static bool is_any_write_queued(const struct tn_cuda_events *events, _Atomic uint32_t *flags)
{
    const uint32_t count = atomic_load_explicit(&events->slot_count, memory_order_relaxed);

    for (uint32_t i = 0; i < count && i < TN_CUDA_FLAGS; i++) {
        if (!flag_is_set(flags, i + 1, slot_at(events, i))) {
            return true;
        }
    }
    return false;
}

/* A queued write must not reach memory that is somebody else's by then. */
static void flags_close(struct tn_cuda *cuda, _Atomic uint32_t *flags, bool driver_works)
{
    void *memory = (void *)(uintptr_t)flags; // NOLINT(performance-no-int-to-ptr)

    if (driver_works) {
        if (is_any_write_queued(&cuda->events, flags)) {
            (void)cuda->driver.cuCtxSynchronize();
        }
        (void)cuda->driver.cuMemHostUnregister(memory);
    }
    tn_host_free(memory, FLAG_MEMORY);
}

void tn_cuda_events_fini(struct tn_cuda *cuda, bool driver_works)
{
    struct tn_cuda_events *events = &cuda->events;
    _Atomic uint32_t *flags = atomic_load_explicit(&events->flags, memory_order_relaxed);

    if (flags) {
        flags_close(cuda, flags, driver_works);
    }
    for (uint32_t i = 0; events->chunks[i]; i++) {
        tn_host_free(events->chunks[i], chunk_size(i) * sizeof *events->chunks[i]);
    }
    tn_lock_fini(&events->lock);
}
