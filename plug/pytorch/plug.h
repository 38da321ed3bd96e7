/* SPDX-License-Identifier: MIT */
/*
 * libtarn_torch.so: libtarn as the allocator of PyTorch's CUDA tensors.
 *
 * The first part has the signatures that torch.cuda.memory.CUDAPluggableAllocator and its setters
 * expect, the second is for the code that installs them (the Python package `tarn`). Each device
 * gets one allocator on first use, with the settings of the environment (tarn_config_from_env);
 * device N is the GPU "cuda:N", unless tarn_torch_use_device replaced it.
 *
 * Every function may be called from any thread. Torch's functions throw C++ exceptions when they
 * fail: c10::OutOfMemoryError when memory ran out (torch.OutOfMemoryError in Python), else
 * c10::Error (RuntimeError), with libtarn's text. Where torch's exception classes cannot be found
 * (tarn_torch_missing_symbol names what is missing) they print the text and end the process:
 * torch would go on with a null pointer.
 */
#ifndef PLUG_PYTORCH_PLUG_H
#define PLUG_PYTORCH_PLUG_H

#include "tarn/allocator.h"
#include "tarn/capture.h"
#include "tarn/history.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Devices 0 to TARN_TORCH_DEVICES_MAX - 1; maximum number of simultaneously routed captures and
 * pools. */
enum {
    TARN_TORCH_DEVICES_MAX = 64,
    TARN_TORCH_ROUTES_MAX = 64
};

/* `size` bytes on the device for work on the stream (a cudaStream_t); NULL for size 0 only. */
TARN_API void *tarn_torch_alloc(size_t size, int device, void *stream);

/* Frees what tarn_torch_alloc returned; NULL is allowed. A device error is not thrown, because
 * destructors call this: the block stays allocated, and tarn_torch_last_error has the error. In a
 * forked child and after tarn_torch_shutdown it does nothing. */
TARN_API void tarn_torch_free(void *ptr, size_t size, int device, void *stream);

/* The same for segments of a torch.cuda.MemPool, where torch itself caches and retries: NULL on
 * failure (tarn_torch_last_error has the reason), never an exception. Freed memory returns to the
 * device. */
TARN_API void *tarn_torch_pool_alloc(size_t size, int device, void *stream);
TARN_API void tarn_torch_pool_free(void *ptr, size_t size, int device, void *stream);

/* Torch passes the number of devices when CUDA starts. */
TARN_API void tarn_torch_init(int device_count);

/* Returns free memory of all devices: torch.cuda.empty_cache. */
TARN_API void tarn_torch_reset(void);

/* torch.cuda.set_per_process_memory_fraction; 0 to 1. */
TARN_API void tarn_torch_set_memory_fraction(double fraction, int device);

/* Start of the segment that contains the block, and its size in *size_out unless that is NULL. */
TARN_API void *tarn_torch_base_alloc(void *ptr, size_t *size_out);

/* Declares that the block is also used on that stream. */
TARN_API void tarn_torch_record_stream(void *ptr, void *stream);

/*
 * From now on requests of streams that the filter accepts go to that pool. `filter` is the hidden
 * pointer to a std::function<bool(cudaStream_t)> parameter (as the Itanium C++ ABI passes it); it
 * is copied. An object that is not laid out as libstdc++'s is left alone, and the pool then takes
 * the requests of every stream that the driver reports as being captured.
 */
TARN_API void tarn_torch_begin_pool(int device, struct tarn_pool_id id, void *filter);
TARN_API void tarn_torch_end_pool(int device, struct tarn_pool_id id);

/* Drops one use of the pool. Called by destructors: as in tarn_torch_free, nothing is thrown. */
TARN_API void tarn_torch_release_pool(int device, struct tarn_pool_id id);

/* For the installer of the plug. */

/* Name of a missing symbol of torch or the C++ library that throwing requires; NULL when there is
 * none. Static storage. */
TARN_API const char *tarn_torch_missing_symbol(void);

/*
 * Torch's pluggable allocator refuses a part of its interface. This takes over, in the object that
 * is torch's current allocator, those of these methods that libtarn can do: cacheInfo
 * (cudnn.benchmark), getMemoryFraction, resetPeakStats, resetAccumulatedStats, emptyCache of one
 * pool, the use counts of pools (torch.cuda.MemPool), sharing with other processes, peers of
 * expandable segments, and torch's calls about its history: ranges of record_function become
 * annotations and compiled regions compile contexts, while recordHistory itself does nothing (see
 * tarn_torch_record_history). Call it after
 * torch.cuda.memory.change_current_allocator and before CUDA starts. TARN_ERR_NOT_SUPPORTED when
 * the object is not such an allocator or not laid out as expected; it is then unchanged.
 */
TARN_API enum tarn_status tarn_torch_take_methods(struct tarn_error *error) TARN_MUST_CHECK;

/* Whether the method with that C++ name was replaced. */
TARN_API bool tarn_torch_has_method(const char *name);

/* Uses this device for the ordinal, for example a simulated one for tests; borrowed until
 * tarn_torch_close_device. TARN_ERR_STATE when the ordinal is already in use. */
TARN_API enum tarn_status tarn_torch_use_device(int ordinal, struct tarn_device *device,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* The device's allocator, borrowed until tarn_torch_close_device: NULL before the first allocation
 * there and in a forked child; opened on demand. */
TARN_API struct tarn_allocator *tarn_torch_find_allocator(int device);
TARN_API enum tarn_status tarn_torch_open_allocator(int device,
                                                    struct tarn_allocator **allocator_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Fraction of the device's memory that may be reserved; 1 by default and for unused devices. */
TARN_API double tarn_torch_get_memory_fraction(int device);

/* Changes the settings of all devices, including those opened later, as tarn_config_update does. */
TARN_API enum tarn_status tarn_torch_configure(const char *text,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* Settings of the next device: those of the environment with later changes. */
TARN_API enum tarn_status tarn_torch_get_config(struct tarn_config *config_out,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* Called when memory runs out on any device, on the failing thread and with no lock held, with the
 * device, the bytes of the device request, the limit or the device's total, and its free bytes.
 * There is one observer; NULL removes it. */
typedef void (*tarn_torch_oom_observer)(int device, uint64_t size, uint64_t total, uint64_t free);
TARN_API void tarn_torch_set_oom_observer(tarn_torch_oom_observer observer);

/* When memory runs out on a device, writes a snapshot of all devices, with their histories, to this
 * path before calling observers; %p, %r, names and errors are as in tarn/oom_dump.h. NULL disables
 * it. The default is the path in the variable TARN_DUMP_ON_OOM, if any. TARN_ERR_STATE after a fork
 * and after tarn_torch_shutdown. */
TARN_API enum tarn_status tarn_torch_dump_on_oom(const char *path,
                                                 struct tarn_error *error) TARN_MUST_CHECK;

/* The expanded path, "" = none; `path` has space for TARN_OOM_PATH_BYTES. Errors as above, and
 * those of an invalid path in the variable. */
TARN_API enum tarn_status tarn_torch_get_dump_on_oom(char *path,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Number of such snapshots attempted; *error_out has the status and text of the last one. */
TARN_API uint64_t tarn_torch_oom_dumps(struct tarn_error *error_out);

/* The latest failure of any function here; false, leaving *error_out untouched, when there was
 * none. */
TARN_API bool tarn_torch_last_error(struct tarn_error *error_out);

/*
 * History: torch.cuda.memory._record_memory_history. Each device has its own history, created when
 * it is first recorded; the options also apply to devices opened later.
 *
 * Stacks are those of Python, on threads known to Python. Like torch's recorder, a thread without
 * the interpreter's lock acquires it before taking any lock of the library, except in
 * tarn_torch_pool_alloc and tarn_torch_pool_free.
 */
struct tarn_torch_recording {
    uint32_t struct_size; /* sizeof(struct tarn_torch_recording) */
    bool enabled;         /* false: stops and discards all events; other fields are ignored */
    bool clear;           /* discard the events so far */
    bool c_stacks;        /* also unwind C stacks, which precede those of Python */
    enum tarn_context_level level; /* which events and blocks get stacks */
    uint64_t max_entries;          /* events per device, > 0; TARN_SIZE_UNLIMITED: 2,097,152 */
    uint64_t skip_actions;         /* bits 1 << TARN_ACTION_...: not recorded */
    uint64_t max_python_frames;    /* distinct frames of all stacks; 0 = 262,144, the maximum */
};

/* Fails with TARN_ERR_INVALID_ARGUMENT, TARN_ERR_HOST_MEMORY, TARN_ERR_NOT_SUPPORTED for
 * backend:cudaMallocAsync, and TARN_ERR_STATE after a fork and after tarn_torch_shutdown. Recording
 * is then off on all devices. */
TARN_API enum tarn_status tarn_torch_record_history(const struct tarn_torch_recording *recording,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

TARN_API bool tarn_torch_is_recording(void);

/* The device's history, borrowed until tarn_torch_close_device; NULL if it has none. */
TARN_API struct tarn_history *tarn_torch_find_history(int device);

/* Number of distinct Python frames in stacks, and of stacks dropped for lack of space. */
TARN_API void tarn_torch_get_python_frames(uint64_t *frames_out, uint64_t *dropped_out);

/* A snapshot of all devices in use with their histories, as from tarn_snapshot_capture. Takes the
 * interpreter's lock, if there is an interpreter, to resolve function names. TARN_ERR_NOT_FOUND
 * while no device is in use. */
TARN_API enum tarn_status tarn_torch_capture(const struct tarn_capture_options *options,
                                             struct tarn_snapshot **snapshot_out,
                                             struct tarn_error *error) TARN_MUST_CHECK;

/* The process is about to exit: from now on frees do nothing and everything else fails with
 * TARN_ERR_STATE. */
TARN_API void tarn_torch_shutdown(void);

/* Returns all memory of a device and closes it; no other call may use it. For tests, and for
 * programs that continue without torch. */
TARN_API void tarn_torch_close_device(int device);

#ifdef __cplusplus
}
#endif

#endif
