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

#define TN_OP_DEVICE struct tarn_device *device

#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments) enum tarn_status(*name) parameters;
#include "device/device_ops.def"
#undef TN_DEVICE_OP
#undef TN_OP_DEVICE

    /* As tarn_device_walk_processes; may take milliseconds. `number_out` is the device's number on
     * this machine. TARN_ERR_NOT_FOUND and TARN_ERR_NOT_READY also have a text. */
    enum tarn_status (*processes)(struct tarn_device *device, tarn_process_visitor visit,
                                  void *context, int *number_out);

    /* Whether work of this device can be queued on the stream: TARN_ERR_INVALID_ARGUMENT, with its
     * text, for a stream of another device. */
    enum tarn_status (*stream_check)(struct tarn_device *device, tarn_stream stream);

    /* Capture: work on a stream becomes nodes of a graph instead of running. Returns the unique id
     * of the stream's capture, 0 if there is none, and the stream's terminals: the nodes that its
     * next work will depend on, none without a capture. Stores the first `capacity` nodes in
     * `nodes` (NULL when that is 0) and the total number in `count_out`; if that is larger, the
     * caller retries with more space. */
    enum tarn_status (*capture_info)(struct tarn_device *device, tarn_stream stream,
                                     uint64_t *capture_out, tn_graph_node *nodes, uint32_t capacity,
                                     uint32_t *count_out);

    /* Queued on a stream of `device`; the devices in it are of the same backend. A copy `by_peer`
     * (cudaMemcpyPeerAsync) needs no peer access. A copy from or to host memory may or may not be
     * complete when it returns: wait for the stream. */
    enum tarn_status (*copy)(struct tarn_device *device, const struct tn_copy *copy,
                             tarn_stream stream);

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
    const char *bus_id;            /* PCI address, by which NVML knows it; NULL = it has none */
};

static inline bool tn_stream_is_per_thread(const struct tarn_device *device, tarn_stream stream)
{
    return stream != 0 && stream == device->per_thread_stream;
}

/* Fails with TARN_ERR_NOT_SUPPORTED: memory is cached per stream handle, and this handle is a
 * different stream in each thread. */
enum tarn_status tn_stream_refuse_per_thread(tarn_stream stream, struct tarn_error *error);

#endif
