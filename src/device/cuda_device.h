/* SPDX-License-Identifier: MIT */
/*
 * A GPU through the CUDA driver. Handles are the driver's own: streams, and pages and graph nodes
 * as numbers. The driver tracks sizes and live objects, so nothing is recorded here, but of events
 * (cuda_event_slots.h).
 *
 * Every call runs in the device's primary context, which the CUDA runtime (and so PyTorch) uses,
 * and in relaxed capture mode, so that allocating memory while any stream is being captured neither
 * fails nor invalidates the capture. Both are restored afterwards. That costs one driver call if
 * the context is already current, two more otherwise, and two exchanges of a thread-local word.
 *
 * Releasing calls succeed silently once the driver has shut down, which happens before the last
 * destructors of a process run: everything is already freed then. In a child forked after opening,
 * every call fails and closing does nothing, because the driver does not work there.
 *
 * Locks: only NVML's and that of the events; the driver is thread-safe.
 */
#ifndef TN_DEVICE_CUDA_DEVICE_H
#define TN_DEVICE_CUDA_DEVICE_H

#include "base/attr.h"
#include "base/os_fork.h"
#include "device/cuda_driver.h"
#include "device/cuda_event_slots.h"
#include "device/device_ops.h"
#include "device/nvml.h"

#include <stdatomic.h>
#include <stdbool.h>

enum {
    TN_CUDA_BUS_ID_MAX = 32
};

/* All constant after opening, except `fork`, `pool_is_ready`, `nvml` and `events`. */
struct tn_cuda {
    struct tarn_device base; /* first */
    struct tn_cuda_driver driver;
    struct tn_fork_watch fork;
    uint64_t id;   /* unique within the process */
    int device;    /* the driver's handle of the GPU */
    void *context; /* its primary context, retained */
    void *pool;    /* its default pool, NULL if it has none */
    bool has_virtual_memory;
    struct tn_cu_mem_prop page_prop; /* of physical pages */
    atomic_bool pool_is_ready;       /* configured to keep freed memory */
    char bus_id[TN_CUDA_BUS_ID_MAX];
    struct tn_nvml nvml;
    struct tn_cuda_events events;
};

/* Which GPU to open, and with which libraries; NULL paths are the installed ones. */
struct tn_cuda_options {
    int ordinal;
    const char *driver_path;
    const char *nvml_path; /* outlives the device */
};

/* Caller owns *device_out, close with tarn_device_close. Errors of tn_cuda_driver_open, and:
 * TARN_ERR_NOT_FOUND without a GPU, TARN_ERR_INVALID_ARGUMENT for a GPU number that does not
 * exist. */
enum tarn_status tn_cuda_open(const struct tn_cuda_options *options,
                              struct tarn_device **device_out,
                              struct tarn_error *error) TARN_MUST_CHECK;

/* The CUDA device behind a device, or NULL if it is another kind. */
struct tn_cuda *tn_cuda_from(struct tarn_device *device);

/* The context that the calling thread has current, NULL for none; false if the driver does not
 * say. */
bool tn_cuda_get_current(const struct tn_cuda *cuda, void **context_out) TN_MUST_CHECK;

/* ---- one call of the table ---- */

enum tn_cuda_purpose {
    TN_CUDA_TAKES, /* acquires something: fails once the driver has shut down */
    TN_CUDA_GIVES  /* releases something, or waits: succeeds then */
};

struct tn_cuda_call {
    struct tn_cuda *cuda;
    enum tn_cuda_purpose purpose;
    enum tarn_status status; /* of the call so far */
    bool pushed;             /* we pushed the context */
    bool exchanged;          /* we changed the capture mode */
    int mode;                /* the thread's previous mode */
};

/* Starts a call; false when it cannot be made. In either case the caller finishes with
 * tn_cuda_end. */
bool tn_cuda_begin(struct tn_cuda_call *call, struct tarn_device *device,
                   enum tn_cuda_purpose purpose);

/* Records the result of a driver function, with its name for the thread's last error. True on
 * success. */
bool tn_cuda_did(struct tn_cuda_call *call, const char *name, int result);

/* Fails the call with our own reason. */
void tn_cuda_refuse(struct tn_cuda_call *call, const char *format, ...) TN_PRINTF(2, 3);

/* Restores what tn_cuda_begin changed; returns the call's status. */
enum tarn_status tn_cuda_end(struct tn_cuda_call *call);

/* ---- the table's functions ---- */

/* The work of each call, which has begun; see device_ops.h. Failures are in the call's status. */
#define TN_OP_DEVICE struct tn_cuda_call *call

#define TN_DEVICE_OP(NAME, name, purpose, parameters, arguments) void tn_cuda_op_##name parameters;
#include "device/device_ops.def"
#undef TN_DEVICE_OP
#undef TN_OP_DEVICE

/* cuda_event.c, cuda_graph.c and cuda_copy.c: these begin and end the call themselves. */
enum tarn_status tn_cuda_event_query(struct tarn_device *device, tn_event_handle event);
enum tarn_status tn_cuda_capture_info(struct tarn_device *device, tarn_stream stream,
                                      uint64_t *capture_out, tn_graph_node *nodes,
                                      uint32_t capacity, uint32_t *count_out);
enum tarn_status tn_cuda_copy(struct tarn_device *device, const struct tn_copy *copy,
                              tarn_stream stream);

/* ---- events ---- */

void tn_cuda_events_init(struct tn_cuda_events *events);

/* Frees what the device's events have of the host. `driver_works`: the driver has not shut down,
 * and the device's context is current. */
void tn_cuda_events_fini(struct tn_cuda *cuda, bool driver_works);

#endif
