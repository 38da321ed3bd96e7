/* SPDX-License-Identifier: MIT */
/*
 * The simulated device: a GPU's memory as the allocator sees it, on a machine without one.
 * Addresses, capacity, streams, events and virtual memory behave as on a GPU; time is virtual and
 * advances only on request; any call can be made to fail. Without backing memory nothing is
 * committed: 141 GB fit on a laptop. All functions are thread-safe and take a device opened by
 * tarn_sim_open (or by tarn_device_open with a "sim" spec).
 */
#ifndef TARN_SIM_H
#define TARN_SIM_H

#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Zero bytes mean the defaults. */
struct tarn_sim_options {
    uint32_t struct_size;       /* sizeof(struct tarn_sim_options) */
    int ordinal;                /* device number */
    uint64_t capacity;          /* bytes of memory; 0 = 80 GiB */
    uint64_t base_address;      /* start of the address range, a multiple of 2 MiB below 2^57; 0 =
                                   0x7f0000000000 */
    bool backed;                /* memory is real host memory: contents can be written and read */
    bool manual_events;         /* a recorded event completes only by tarn_sim_complete_event, an
                                   event wait or a stream wait */
    struct tarn_device *memory; /* a GPU that provides the memory: every allocation, page and
                                   mapping is also made there, at the GPU's own addresses, and fails
                                   when it fails there. It must outlive this device. NULL = none.
                                   Excludes `backed`; must not be a simulated device */
};

/* Opens a simulated device; `options` NULL means the defaults. Caller owns it, close with
 * tarn_device_close. Fails with TARN_ERR_INVALID_ARGUMENT and TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_sim_open(const struct tarn_sim_options *options,
                                        struct tarn_device **device_out,
                                        struct tarn_error *error) TARN_MUST_CHECK;

/* Scripted addresses: queue the address of the next plain allocation (`alloc`) or reservation
 * (`reserve`). A scripted address that overlaps allocated memory is skipped in favour of the
 * device's own choice and counted in tarn_sim_counters.scripted_skipped. A failed call consumes
 * none. The device's own choice is the lowest free multiple of 2 MiB from the base address.
 * TARN_ERR_INVALID_ARGUMENT for 0, for 2^57 and above, and for a reservation address that is not a
 * multiple of 2 MiB; TARN_ERR_LIMIT when the queue holds a million. */
TARN_API enum tarn_status tarn_sim_script_alloc(struct tarn_device *device,
                                                tarn_ptr address) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_sim_script_reserve(struct tarn_device *device,
                                                  tarn_ptr address) TARN_MUST_CHECK;

/* Sets a function that chooses the address of every plain allocation and reservation without a
 * scripted one. It is called with the device's lock held and must not call the device. If it
 * returns 0, or an address that overlaps allocated memory, the device chooses. NULL removes it. */
TARN_API void tarn_sim_set_address_oracle(struct tarn_device *device,
                                          tarn_ptr (*oracle)(void *context, bool reservation,
                                                             uint64_t size),
                                          void *context);

/* Drops unused scripted addresses. */
TARN_API void tarn_sim_script_clear(struct tarn_device *device);

/* Memory allocated by other processes: it counts as used in memory info and against the
 * capacity. */
TARN_API void tarn_sim_set_foreign_memory(struct tarn_device *device, uint64_t bytes);

/* Virtual clock in nanoseconds, starting at 0. Advancing it completes queued work; waiting for an
 * event or stream advances it to the end of that work. Freeing plain memory waits for nothing. */
TARN_API uint64_t tarn_sim_now_ns(struct tarn_device *device);
TARN_API void tarn_sim_advance_ns(struct tarn_device *device, uint64_t ns);

/* Queues work that takes `ns` of virtual time on a stream. */
TARN_API enum tarn_status tarn_sim_enqueue_ns(struct tarn_device *device, tarn_stream stream,
                                              uint64_t ns) TARN_MUST_CHECK;

/* Queue work on a stream that does not finish until it is unblocked; finish the oldest such work of
 * the stream, TARN_ERR_STATE when there is none. Waiting for a blocked stream or event finishes the
 * blocking work, since the wait would never return otherwise, and is counted in
 * tarn_sim_counters.forced_unblocks. */
TARN_API enum tarn_status tarn_sim_block_stream(struct tarn_device *device,
                                                tarn_stream stream) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_sim_unblock_stream(struct tarn_device *device,
                                                  tarn_stream stream) TARN_MUST_CHECK;

/* Makes later work on `stream` wait for the work queued on `other` now, like recording an event on
 * one and waiting for it on the other. When `other` is being captured, the stream joins that
 * capture. TARN_ERR_STATE when the stream is being captured and `other` is not, or in another
 * capture: a capture cannot depend on outside work. */
TARN_API enum tarn_status tarn_sim_join_stream(struct tarn_device *device, tarn_stream stream,
                                               tarn_stream other) TARN_MUST_CHECK;

/* Starts a capture on the stream, unless it is already in one, or ends it: for every stream in the
 * capture if it started on this stream, else only for this one. Work queued on a capturing stream,
 * blocking work included, becomes a node of the capture's graph instead of taking time; the graph
 * is never run. Waiting for such a stream and querying its events consider the work outside the
 * capture; a GPU would fail. */
TARN_API enum tarn_status tarn_sim_set_capturing(struct tarn_device *device, tarn_stream stream,
                                                 bool capturing) TARN_MUST_CHECK;

/* Completes one recorded event at once. TARN_ERR_NOT_FOUND if there is no such event. */
TARN_API enum tarn_status tarn_sim_complete_event(struct tarn_device *device,
                                                  uint64_t event) TARN_MUST_CHECK;

/* Sets a function that is called when an incomplete event is queried; true completes the event. It
 * is called with the device's lock held and must not call the device. NULL removes it. */
TARN_API void tarn_sim_set_event_oracle(struct tarn_device *device,
                                        bool (*oracle)(void *context, uint64_t event,
                                                       tarn_stream stream),
                                        void *context);

/* Kinds of calls, for counters and planned failures. */
enum tarn_sim_call {
    TARN_SIM_ALLOC,
    TARN_SIM_FREE,
    TARN_SIM_MEMORY_INFO,
    TARN_SIM_EVENT_CREATE,
    TARN_SIM_EVENT_DESTROY,
    TARN_SIM_EVENT_RECORD,
    TARN_SIM_EVENT_QUERY,
    TARN_SIM_EVENT_WAIT,
    TARN_SIM_STREAM_WAIT,
    TARN_SIM_CAPTURE_INFO,
    TARN_SIM_VA_RESERVE,
    TARN_SIM_VA_RELEASE,
    TARN_SIM_PAGE_CREATE,
    TARN_SIM_PAGE_RELEASE,
    TARN_SIM_MAP,
    TARN_SIM_UNMAP,
    TARN_SIM_VA_GRANT,
    TARN_SIM_POOL_ALLOC,
    TARN_SIM_POOL_FREE,
    TARN_SIM_POOL_TRIM,
    TARN_SIM_POOL_INFO,
    TARN_SIM_POOL_PEAKS,
    TARN_SIM_POOL_RESET_PEAKS,
    TARN_SIM_STREAM_WAIT_EVENT,
    TARN_SIM_STREAM_CREATE,
    TARN_SIM_STREAM_DESTROY,
    TARN_SIM_DEVICE_WAIT,
    TARN_SIM_GRAPH_NODE_PARENTS,
    TARN_SIM_IPC_EXPORT,
    TARN_SIM_IPC_OPEN,
    TARN_SIM_IPC_CLOSE,
    TARN_SIM_PAGE_EXPORT,
    TARN_SIM_PAGE_IMPORT,
    TARN_SIM_PEER_REACHES,
    TARN_SIM_PEER_ENABLE,
    TARN_SIM_COPY,
    TARN_SIM_HOST_ALLOC,
    TARN_SIM_HOST_FREE,
    TARN_SIM_HOST_REGISTER,
    TARN_SIM_HOST_UNREGISTER,
    TARN_SIM_CALL_COUNT,
    TARN_SIM_ANY = TARN_SIM_CALL_COUNT /* any call: for planned failures only */
};

/* Plans a failure: the n-th call of that kind from now on fails once with `status`, changing
 * nothing (n >= 1). Each kind can have one plan; n = 0 or TARN_OK removes it. */
TARN_API void tarn_sim_fail_nth(struct tarn_device *device, enum tarn_sim_call call, uint64_t n,
                                enum tarn_status status);

struct tarn_sim_counters {
    uint32_t struct_size; /* in: sizeof(struct tarn_sim_counters) */
    uint64_t calls[TARN_SIM_CALL_COUNT];
    uint64_t failures;         /* calls that failed, planned or not */
    uint64_t scripted_skipped; /* scripted addresses that could not be used */
    uint64_t forced_unblocks;
    uint64_t used_bytes; /* memory allocated now: exact sizes of allocations, pages, and units of
                            the stream-ordered pool; without foreign memory */
    uint64_t peak_used_bytes;
    uint64_t live_allocations; /* plain allocations */
    uint64_t live_pages;
    uint64_t live_mappings;
    uint64_t live_reservations;
    uint64_t live_events;
    uint64_t live_streams; /* created ones only */
    uint64_t live_opened;  /* open allocations of other processes */
    uint64_t live_host;    /* pinned host allocations, registered ones included */
};

/* Fills *counters_out, all from one moment; fields beyond its struct_size are left out. */
TARN_API void tarn_sim_get_counters(struct tarn_device *device,
                                    struct tarn_sim_counters *counters_out);

/* For backed devices: the host memory behind `size` bytes at a device address; NULL if they are not
 * allocated or mapped in one piece, `size` is 0, or the device is not backed. A page mapped twice
 * has the same bytes at both addresses. Borrowed until freed or unmapped. */
TARN_API void *tarn_sim_host_memory(struct tarn_device *device, tarn_ptr address, uint64_t size);

/* For devices with `memory` in their options: the address of `size` bytes on that GPU; 0 if they
 * are not allocated or mapped in one piece, `size` is 0, or the device has no such memory. */
TARN_API tarn_ptr tarn_sim_memory_address(struct tarn_device *device, tarn_ptr address,
                                          uint64_t size);

#ifdef __cplusplus
}
#endif

#endif
