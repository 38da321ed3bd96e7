/* SPDX-License-Identifier: MIT */
/*
 * What the allocator needs from a device, as one table: memory, streams, events, virtual memory,
 * stream-ordered pools, memory info, clock. A backend (the simulated device, the CUDA driver) fills
 * the table; nothing above this folder knows which backend it uses.
 *
 * Contract for every function unless it says otherwise:
 *   - thread-safe; may be called while the allocator holds its lock; never calls back into it;
 *   - returns TARN_OK, or a status with nothing changed and outputs untouched.
 *     TARN_ERR_OUT_OF_MEMORY: the device has no memory left; the caller may free something and
 *     retry.
 *     TARN_ERR_HOST_MEMORY: the backend could not keep its own records. TARN_ERR_DEVICE: any other
 *     failure of the device, with its text from `last_error`. Misuse is such a failure: an unknown
 *     address or handle, 0 bytes, a size that is not a multiple of the granularity;
 *   - sizes are bytes, times nanoseconds, streams the handles that users pass (0 = default stream).
 */
#ifndef TN_DEVICE_OPS_H
#define TN_DEVICE_OPS_H

#include "tarn/device.h"
#include "tarn/status.h"

#include <stddef.h>

/* Backend handles of events, physical pages and graph nodes; 0 is never valid. */
typedef uint64_t tn_event_handle;
typedef uint64_t tn_page_handle;
typedef uint64_t tn_graph_node;

/* Names a plain allocation to another process: opaque bytes of the backend. */
struct tn_ipc_handle {
    unsigned char bytes[64];
};

/* A copy of `size` bytes; either side is a device's memory or, without a device, the host's. */
struct tn_copy {
    struct tarn_device *to_device;
    struct tarn_device *from_device;
    uint64_t to;
    uint64_t from;
    uint64_t size;
    bool by_peer; /* names both devices to the driver */
};

struct tn_device_ops {
    const char *name; /* "sim", "cuda" */

    /* Plain memory: cudaMalloc and cudaFree. `free` takes an address that `alloc` returned; it
     * waits until the device has stopped using the memory. */
    enum tarn_status (*alloc)(struct tarn_device *device, uint64_t size, tarn_ptr *address_out);
    enum tarn_status (*free)(struct tarn_device *device, tarn_ptr address);
    enum tarn_status (*memory_info)(struct tarn_device *device, uint64_t *free_out,
                                    uint64_t *total_out);

    /* As tarn_device_walk_processes; may take milliseconds. `number_out` is the device's number on
     * this machine. TARN_ERR_NOT_FOUND and TARN_ERR_NOT_READY also have a text. */
    enum tarn_status (*processes)(struct tarn_device *device, tarn_process_visitor visit,
                                  void *context, int *number_out);

    /* Events mark a point in a stream. `query` returns TARN_OK when everything before that point is
     * done and TARN_ERR_NOT_READY otherwise; `wait` blocks until then. An event that was never
     * recorded is complete. Handles of destroyed events may be reused. */
    enum tarn_status (*event_create)(struct tarn_device *device, tn_event_handle *event_out);
    enum tarn_status (*event_destroy)(struct tarn_device *device, tn_event_handle event);
    enum tarn_status (*event_record)(struct tarn_device *device, tn_event_handle event,
                                     tarn_stream stream);
    enum tarn_status (*event_query)(struct tarn_device *device, tn_event_handle event);
    enum tarn_status (*event_wait)(struct tarn_device *device, tn_event_handle event);

    /* Blocks until the stream has done everything queued so far. */
    enum tarn_status (*stream_wait)(struct tarn_device *device, tarn_stream stream);
    /* Whether work of this device can be queued on the stream: TARN_ERR_INVALID_ARGUMENT, with its
     * text, for a stream of another device. */
    enum tarn_status (*stream_check)(struct tarn_device *device, tarn_stream stream);
    /* Makes later work on the stream wait, on the device, for the work that the event marks now.
     * The event may be recorded again or destroyed immediately. */
    enum tarn_status (*stream_wait_event)(struct tarn_device *device, tarn_stream stream,
                                          tn_event_handle event);
    /* Creates a non-blocking stream. Destroying it does not wait; queued work still completes. */
    enum tarn_status (*stream_create)(struct tarn_device *device, tarn_stream *stream_out);
    enum tarn_status (*stream_destroy)(struct tarn_device *device, tarn_stream stream);
    /* Blocks until all streams have done everything queued so far. */
    enum tarn_status (*device_wait)(struct tarn_device *device);

    /* Capture: work on a stream becomes nodes of a graph instead of running. `capture_info` returns
     * the unique id of the stream's capture, 0 if there is none, and the stream's terminals: the
     * nodes that its next work will depend on. `graph_node_parents` returns the direct dependencies
     * of a node of an active capture. Both store the first `capacity` nodes in `nodes` (NULL when
     * that is 0) and the total number in `count_out`; if that is larger, the caller retries with
     * more space. */
    enum tarn_status (*capture_info)(struct tarn_device *device, tarn_stream stream,
                                     uint64_t *capture_out, tn_graph_node *nodes, uint32_t capacity,
                                     uint32_t *count_out);
    enum tarn_status (*graph_node_parents)(struct tarn_device *device, tn_graph_node node,
                                           tn_graph_node *nodes, uint32_t capacity,
                                           uint32_t *count_out);

    /* Virtual memory: reserve addresses, create physical pages, map pages at addresses, give
     * devices access. All sizes and addresses are multiples of `granularity`. Pages are mapped
     * whole. A page must be unmapped before its release; a range is released as it was reserved,
     * with nothing mapped in it. `unmap` and `va_grant` take any run of adjacent whole mappings of
     * one reservation. Mapping gives this device read and write access; `va_grant` gives it to a
     * peer. A page may be mapped at several addresses. */
    enum tarn_status (*va_reserve)(struct tarn_device *device, uint64_t size,
                                   tarn_ptr *address_out);
    enum tarn_status (*va_release)(struct tarn_device *device, tarn_ptr address, uint64_t size);
    enum tarn_status (*page_create)(struct tarn_device *device, uint64_t size,
                                    tn_page_handle *page_out);
    enum tarn_status (*page_release)(struct tarn_device *device, tn_page_handle page);
    enum tarn_status (*map)(struct tarn_device *device, tarn_ptr address, uint64_t size,
                            tn_page_handle page);
    enum tarn_status (*unmap)(struct tarn_device *device, tarn_ptr address, uint64_t size);
    enum tarn_status (*va_grant)(struct tarn_device *device, tarn_ptr address, uint64_t size,
                                 int peer_ordinal);

    /* Sharing memory with other processes. `ipc_export` names a plain allocation; `ipc_open`, in
     * another process, maps it and returns its actual size, whatever the handle claims, and
     * `ipc_close` unmaps it. A process opens an allocation once at a time, or else gets the same
     * address and must close it as often. `page_export` returns a descriptor for a page, which the
     * caller closes; `page_import`, in another process, makes a page of the same memory from the
     * first process's id and its descriptor, if it is one of `size` bytes. An imported page is
     * mapped and released like any other. Exported memory must stay allocated while others have it
     * open. */
    enum tarn_status (*ipc_export)(struct tarn_device *device, tarn_ptr address,
                                   struct tn_ipc_handle *handle_out);
    enum tarn_status (*ipc_open)(struct tarn_device *device, const struct tn_ipc_handle *handle,
                                 tarn_ptr *address_out, uint64_t *size_out);
    enum tarn_status (*ipc_close)(struct tarn_device *device, tarn_ptr address);
    enum tarn_status (*page_export)(struct tarn_device *device, tn_page_handle page,
                                    int *descriptor_out);
    enum tarn_status (*page_import)(struct tarn_device *device, int64_t process, int descriptor,
                                    uint64_t size, tn_page_handle *page_out);

    /* Copying. `peer_reaches` says whether the hardware lets `device` reach a peer's memory;
     * `peer_enable` enables access to the peer's plain memory and is idempotent. `copy` is queued
     * on a stream of `device`; the devices in it are of the same backend. A copy `by_peer`
     * (cudaMemcpyPeerAsync) needs no peer access. A copy from or to host memory may or may not be
     * complete when it returns: wait for the stream. */
    enum tarn_status (*peer_reaches)(struct tarn_device *device, struct tarn_device *peer,
                                     bool *reaches_out);
    enum tarn_status (*peer_enable)(struct tarn_device *device, struct tarn_device *peer);
    enum tarn_status (*copy)(struct tarn_device *device, const struct tn_copy *copy,
                             tarn_stream stream);

    /* Pinned memory of the host, which every device of the backend reaches: the driver's own, or
     * the caller's memory, registered until `host_unregister`. */
    enum tarn_status (*host_alloc)(struct tarn_device *device, uint64_t size, void **memory_out);
    enum tarn_status (*host_free)(struct tarn_device *device, void *memory);
    enum tarn_status (*host_register)(struct tarn_device *device, void *memory, uint64_t size);
    enum tarn_status (*host_unregister)(struct tarn_device *device, void *memory);

    /* Stream-ordered memory: cudaMallocAsync and cudaFreeAsync from the device's default pool.
     * Memory freed on a stream can be reused on that stream immediately, and on others when the
     * stream has reached the free. `pool_trim` returns cached memory to the device but keeps at
     * least `keep` bytes reserved. */
    enum tarn_status (*pool_alloc)(struct tarn_device *device, uint64_t size, tarn_stream stream,
                                   tarn_ptr *address_out);
    enum tarn_status (*pool_free)(struct tarn_device *device, tarn_ptr address, tarn_stream stream);
    enum tarn_status (*pool_trim)(struct tarn_device *device, uint64_t keep);
    enum tarn_status (*pool_info)(struct tarn_device *device, uint64_t *reserved_out,
                                  uint64_t *used_out);
    /* The largest values that `pool_info` could have returned since the peaks were reset. */
    enum tarn_status (*pool_peaks)(struct tarn_device *device, uint64_t *reserved_out,
                                   uint64_t *used_out);
    enum tarn_status (*pool_reset_peaks)(struct tarn_device *device);

    /* Monotonic time. The simulated device's clock advances only on request. */
    uint64_t (*now_ns)(struct tarn_device *device);

    /* Text of this thread's last failure on the device, "" when there is none. Valid until the
     * thread's next call. */
    const char *(*last_error)(struct tarn_device *device);

    /* Destroys the device. */
    void (*destroy)(struct tarn_device *device);
};

/* First member of every backend's device. Constant after open. */
struct tarn_device {
    const struct tn_device_ops *ops;
    int ordinal;                   /* device number in the backend's numbering, from 0 */
    uint64_t total_memory;         /* bytes in all */
    uint64_t granularity;          /* of virtual memory operations, bytes, a power of two */
    tarn_stream per_thread_stream; /* the handle that is a different stream in each thread; 0 =
                                      none */
};

static inline bool tn_stream_is_per_thread(const struct tarn_device *device, tarn_stream stream)
{
    return stream != 0 && stream == device->per_thread_stream;
}

/* Fails with TARN_ERR_NOT_SUPPORTED: memory is cached per stream handle, and this handle is a
 * different stream in each thread. */
enum tarn_status tn_stream_refuse_per_thread(tarn_stream stream, struct tarn_error *error);

#endif
