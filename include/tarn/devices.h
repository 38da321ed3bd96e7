/* SPDX-License-Identifier: MIT */
/*
 * Allocators of a process, one for each of its devices: for bindings of frameworks, where an
 * operation names a device by number and a free names none. An allocator is made when its device is
 * first needed. All have the same settings, observers, event sinks and recording; what is changed
 * here applies to every device, those opened later included.
 *
 * Device N is the GPU "cuda:N" unless tarn_devices_use chose another. What a function finds or
 * opens is borrowed, and stays until tarn_devices_destroy.
 *
 * Every function may be called from any thread. In a child that was forked after a device had been
 * opened, opening one and looking at settings fail with TARN_ERR_STATE, and the allocators refuse
 * their calls (tarn/device.h).
 */
#ifndef TARN_DEVICES_H
#define TARN_DEVICES_H

#include "allocator.h"
#include "history.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_devices;

/* Devices 0 to TARN_DEVICES_MAX - 1. */
enum {
    TARN_DEVICES_MAX = 64
};

/* The table that all users of libtarn in this process share. It is never destroyed, so memory of
 * its allocators can be freed until the process ends. */
TARN_API struct tarn_devices *tarn_devices_shared(void);

/* A table apart from it. Caller owns *devices_out, free with tarn_devices_destroy.
 * TARN_ERR_HOST_MEMORY. */
TARN_API enum tarn_status tarn_devices_create(struct tarn_devices **devices_out,
                                              struct tarn_error *error) TARN_MUST_CHECK;

/* Destroys the allocators and histories and closes the devices that it opened. No other call may be
 * in progress or follow. NULL is allowed; the shared table stays. In a forked child it does
 * nothing. */
TARN_API void tarn_devices_destroy(struct tarn_devices *devices);

/* Takes this device for the number, such as a simulated one for tests. It is borrowed until
 * tarn_devices_destroy. TARN_ERR_STATE when the number is in use already. */
TARN_API enum tarn_status tarn_devices_use(struct tarn_devices *devices, int number,
                                           struct tarn_device *device,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* The device's allocator, opened on demand. Errors as tarn_config_from_env, tarn_device_open and
 * tarn_allocator_create, TARN_ERR_INVALID_ARGUMENT for a number that no device can have; a later
 * call may succeed. */
TARN_API enum tarn_status tarn_devices_open(struct tarn_devices *devices, int number,
                                            struct tarn_allocator **allocator_out,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* The device's allocator; NULL while it is not open. Never opens it. */
TARN_API struct tarn_allocator *tarn_devices_find(struct tarn_devices *devices, int number);

/* Settings of the next device: those of the environment with later changes. As
 * tarn_allocator_get_config_sized, and the errors of tarn_config_from_env. */
TARN_API enum tarn_status tarn_devices_get_config_sized(struct tarn_devices *devices,
                                                        struct tarn_config *config_out, size_t size,
                                                        struct tarn_error *error) TARN_MUST_CHECK;

TARN_MUST_CHECK static inline enum tarn_status
tarn_devices_get_config(struct tarn_devices *devices, struct tarn_config *config_out,
                        struct tarn_error *error)
{
    return tarn_devices_get_config_sized(devices, config_out, sizeof *config_out, error);
}

/* Changes the settings of all devices, as tarn_config_update does. Errors of that and of
 * tarn_allocator_set_config. */
TARN_API enum tarn_status tarn_devices_configure(struct tarn_devices *devices, const char *text,
                                                 struct tarn_error *error) TARN_MUST_CHECK;

/* As tarn_allocator_alloc on that device, opened on demand. */
TARN_API enum tarn_status tarn_devices_alloc(struct tarn_devices *devices, int number,
                                             uint64_t size, tarn_stream stream, tarn_ptr *ptr_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* As tarn_allocator_free, on the device that the pointer is of. */
TARN_API enum tarn_status tarn_devices_free(struct tarn_devices *devices, tarn_ptr ptr,
                                            struct tarn_error *error) TARN_MUST_CHECK;

/* What tarn_devices_find_current says instead of a number. */
enum {
    TARN_DEVICE_UNBOUND = -1, /* no context is current */
    TARN_DEVICE_UNKNOWN = -2
};

/* The open device whose primary CUDA context is current in the calling thread: what cudaGetDevice
 * says, in a fifth of its time and however many threads ask. TARN_DEVICE_UNKNOWN when another
 * context is current, no GPU is open, or the driver does not say. Changes nothing. Only for
 * runtimes from CUDA 12 on: before, cudaSetDevice did not make the device's context current. */
TARN_API int tarn_devices_find_current(struct tarn_devices *devices);

/* The allocator that a block is of. For a pointer of none it may be any, which then says so;
 * TARN_ERR_INVALID_POINTER while no device is open. */
TARN_API enum tarn_status tarn_devices_find_owner(struct tarn_devices *devices, tarn_ptr ptr,
                                                  struct tarn_allocator **owner_out,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* tarn_allocator_empty_pool on every open device; those without the pool have nothing to return. A
 * failure ends it, and what was returned before stays returned. */
TARN_API enum tarn_status tarn_devices_empty_pool(struct tarn_devices *devices,
                                                  struct tarn_pool_id id,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* tarn_allocator_set_enabled on every device. */
TARN_API enum tarn_status tarn_devices_set_enabled(struct tarn_devices *devices, bool enabled,
                                                   struct tarn_error *error) TARN_MUST_CHECK;
TARN_API bool tarn_devices_is_enabled(struct tarn_devices *devices);

enum {
    TARN_DEVICES_ATTACHMENTS_MAX = 8
};

/* tarn_allocator_add_sink, _add_oom_observer and _add_memory_callback on every device. Devices
 * whose settings have none of these (backend:cudaMallocAsync) are left out. Adding the same
 * context a second time does nothing. TARN_ERR_LIMIT beyond TARN_DEVICES_ATTACHMENTS_MAX. After a
 * failure no device has it. */
TARN_API enum tarn_status tarn_devices_add_sink(struct tarn_devices *devices,
                                                const struct tarn_sink *sink,
                                                struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_devices_add_oom_observer(struct tarn_devices *devices,
                                                        tarn_oom_observer observer, void *context,
                                                        struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status
tarn_devices_add_memory_callback(struct tarn_devices *devices, tarn_memory_callback callback,
                                 void *context, struct tarn_error *error) TARN_MUST_CHECK;

/* Requests that are to be served from a pool, until tarn_devices_end_pool. */
struct tarn_pool_route {
    uint32_t struct_size; /* sizeof(struct tarn_pool_route) */
    bool is_capture;      /* announces it: tarn_allocator_begin_capture, where there is one */
    void *context;
    tarn_pool_filter accepts;
    void (*gone)(void *context); /* the context is no longer used; may be NULL */
};

/* As tarn_allocator_begin_pool on that device, opened on demand. The struct is copied, and its
 * context belongs to the table until `gone` is called. After a failure it does not. */
TARN_API enum tarn_status tarn_devices_begin_pool(struct tarn_devices *devices, int number,
                                                  struct tarn_pool_id id,
                                                  const struct tarn_pool_route *route,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* As tarn_allocator_end_pool. */
TARN_API enum tarn_status tarn_devices_end_pool(struct tarn_devices *devices, int number,
                                                struct tarn_pool_id id,
                                                struct tarn_error *error) TARN_MUST_CHECK;

enum {
    TARN_RECORDING_ENTRIES = 2097152 /* 56 bytes each, committed on use */
};

/* What the history of each device keeps. */
struct tarn_recording {
    uint32_t struct_size;          /* sizeof(struct tarn_recording) */
    enum tarn_context_level level; /* stacks of the events */
    enum tarn_stack_source stack_source;
    bool clear;            /* first discard the events so far */
    uint64_t max_entries;  /* events; 0 is 1, PTRDIFF_MAX and more TARN_RECORDING_ENTRIES */
    uint64_t skip_actions; /* bits 1 << TARN_ACTION_... of actions to ignore */
    const struct tarn_host_frames *host; /* copied; NULL = none; of histories made later: a device's
                                            is made once and then kept */
};

/* Starts or changes the recording; NULL stops it and discards the events. Errors as
 * tarn_history_create and tarn_allocator_add_sink; after a failure no device is recorded. */
TARN_API enum tarn_status tarn_devices_record(struct tarn_devices *devices,
                                              const struct tarn_recording *recording,
                                              struct tarn_error *error) TARN_MUST_CHECK;
TARN_API bool tarn_devices_is_recording(struct tarn_devices *devices);

/* The device's history; NULL if it was never recorded. */
TARN_API struct tarn_history *tarn_devices_find_history(struct tarn_devices *devices, int number);

/* The number that the host language of a recording assigned to the stack of the block allocated at
 * `ptr`, as tarn_history_host_stack; 0 = none is known. Its reference is the block's. */
TARN_API uint64_t tarn_devices_find_host_stack(struct tarn_devices *devices, tarn_ptr ptr);

/* Adds an annotation to the device's history, as tarn_history_annotate. The fields are PyTorch's:
 * "name", which it needs, and "stage", "START" or "END", among them; of the others
 * TARN_ANNOTATION_FIELDS_MAX are kept. A device that was not used yet is opened for it. Without a
 * recording it does nothing. */
TARN_API void tarn_devices_annotate(struct tarn_devices *devices, int number,
                                    const struct tarn_annotation_field *fields, size_t count);

/* Keeps a failure that nobody could be told of, as in a destructor; and the latest one: false,
 * leaving *error_out untouched, when there was none. */
TARN_API void tarn_devices_keep_error(struct tarn_devices *devices, const struct tarn_error *error);
TARN_API bool tarn_devices_last_error(struct tarn_devices *devices, struct tarn_error *error_out);

#ifdef __cplusplus
}
#endif

#endif
