/* SPDX-License-Identifier: MIT */
/*
 * What the allocator needs from a device, as one table: memory, streams, events, virtual memory,
 * stream-ordered pools, memory info, clock. A backend (the simulated device, the CUDA driver) fills
 * the table; nothing above this folder knows which one it has.
 *
 * Contract for every function unless it says otherwise:
 *   - thread-safe; may be called while the allocator holds its lock; never calls back into it;
 *   - returns TARN_OK, or a status with nothing changed and outputs untouched.
 *     TARN_ERR_OUT_OF_MEMORY: the device has no room; the caller may free something and try again.
 *     TARN_ERR_HOST_MEMORY: the backend could not keep its own records. TARN_ERR_DEVICE: any other
 *     failure of the device, with its text from `last_error`. Misuse is one of those: an unknown
 *     address or handle, 0 bytes, a size that is not granular;
 *   - sizes are bytes, times nanoseconds, streams the handles that users pass (0 = default stream).
 */
#ifndef TN_DEVICE_OPS_H
#define TN_DEVICE_OPS_H

#include "tarn/device.h"
#include "tarn/status.h"

#include <stddef.h>

/* Events, physical pages and nodes of a graph are named by numbers of the backend's; 0 is never
 * valid. */
typedef uint64_t tn_event_handle;
typedef uint64_t tn_page_handle;
typedef uint64_t tn_graph_node;

struct tn_device_ops {
    const char *name; /* "sim", "cuda" */

    /* Plain memory: cudaMalloc and cudaFree. `free` takes an address that `alloc` returned; it
     * waits for the device to stop using it. */
    enum tarn_status (*alloc)(struct tarn_device *device, uint64_t size, tarn_ptr *address_out);
    enum tarn_status (*free)(struct tarn_device *device, tarn_ptr address);
    enum tarn_status (*memory_info)(struct tarn_device *device, uint64_t *free_out,
                                    uint64_t *total_out);

    /* What PyTorch's out-of-memory message says about the processes that use the device: a sentence
     * and a blank for each, as many as fit into `size` bytes (at least 1); "" when not known. May
     * take milliseconds. */
    void (*processes)(struct tarn_device *device, char *text, size_t size);

    /* Events mark a point in a stream. `query` returns TARN_OK when everything before that point is
     * done and TARN_ERR_NOT_READY when not; `wait` blocks until then. An event that was never
     * recorded is done. A destroyed event's handle may be handed out again. */
    enum tarn_status (*event_create)(struct tarn_device *device, tn_event_handle *event_out);
    enum tarn_status (*event_destroy)(struct tarn_device *device, tn_event_handle event);
    enum tarn_status (*event_record)(struct tarn_device *device, tn_event_handle event,
                                     tarn_stream stream);
    enum tarn_status (*event_query)(struct tarn_device *device, tn_event_handle event);
    enum tarn_status (*event_wait)(struct tarn_device *device, tn_event_handle event);

    /* Blocks until the stream has done everything queued so far. */
    enum tarn_status (*stream_wait)(struct tarn_device *device, tarn_stream stream);
    /* Makes work queued on the stream from now on wait, on the device, for what the event marks
     * now. The event may be recorded again or destroyed at once. */
    enum tarn_status (*stream_wait_event)(struct tarn_device *device, tarn_stream stream,
                                          tn_event_handle event);
    /* A stream of the caller's own, which waits for no other by itself. Destroying it waits for
     * nothing: what is queued is done, then it goes. */
    enum tarn_status (*stream_create)(struct tarn_device *device, tarn_stream *stream_out);
    enum tarn_status (*stream_destroy)(struct tarn_device *device, tarn_stream stream);
    /* Blocks until all streams have done everything queued so far. */
    enum tarn_status (*device_wait)(struct tarn_device *device);

    /* Capture: work on a stream becomes nodes of a graph instead of running. `capture_info` gives
     * the number of the capture that the stream is in, 0 when it is in none (no number is used
     * twice), and the stream's terminals: the nodes that its next work will come after.
     * `graph_node_parents` gives the nodes that a node of a capture under way comes directly after.
     * Both store the first `capacity` nodes in the caller's `nodes` (NULL when that is 0) and in
     * `count_out` how many there are: when these are more, the caller asks again with more room. */
    enum tarn_status (*capture_info)(struct tarn_device *device, tarn_stream stream,
                                     uint64_t *capture_out, tn_graph_node *nodes, uint32_t capacity,
                                     uint32_t *count_out);
    enum tarn_status (*graph_node_parents)(struct tarn_device *device, tn_graph_node node,
                                           tn_graph_node *nodes, uint32_t capacity,
                                           uint32_t *count_out);

    /* Virtual memory: reserve addresses, create physical pages, map pages at addresses, give
     * devices access. All sizes and addresses are multiples of `granularity`. One page is mapped
     * whole. A page is released after it was unmapped; a range is released as it was reserved, when
     * nothing in it is mapped. `unmap` and `va_grant` take any run of adjacent whole mappings of
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

    /* Stream-ordered memory: cudaMallocAsync and cudaFreeAsync from the device's default pool.
     * Memory freed on a stream can be handed out on that stream at once, on others when the stream
     * has reached the free. `pool_trim` gives cached memory back to the device, but leaves at least
     * `keep` bytes reserved. */
    enum tarn_status (*pool_alloc)(struct tarn_device *device, uint64_t size, tarn_stream stream,
                                   tarn_ptr *address_out);
    enum tarn_status (*pool_free)(struct tarn_device *device, tarn_ptr address, tarn_stream stream);
    enum tarn_status (*pool_trim)(struct tarn_device *device, uint64_t keep);
    enum tarn_status (*pool_info)(struct tarn_device *device, uint64_t *reserved_out,
                                  uint64_t *used_out);
    /* The largest values that `pool_info` gave or could have given since the peaks were reset. */
    enum tarn_status (*pool_peaks)(struct tarn_device *device, uint64_t *reserved_out,
                                   uint64_t *used_out);
    enum tarn_status (*pool_reset_peaks)(struct tarn_device *device);

    /* Monotonic time. The simulated device's clock moves only when told. */
    uint64_t (*now_ns)(struct tarn_device *device);

    /* Text of this thread's last failure on the device, "" when there is none. Valid until the
     * thread's next call. */
    const char *(*last_error)(struct tarn_device *device);

    /* Frees the backend's part; the device is gone afterwards. */
    void (*destroy)(struct tarn_device *device);
};

/* First member of every backend's device. Constant after open. */
struct tarn_device {
    const struct tn_device_ops *ops;
    int ordinal;           /* device number as the backend counts, from 0 */
    uint64_t total_memory; /* bytes in all */
    uint64_t granularity;  /* unit of virtual memory operations, bytes, a power of two */
};

#endif
