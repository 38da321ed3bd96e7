/* SPDX-License-Identifier: MIT */
/*
 * Devices, the source of memory. A device must outlive the allocators created on it and may be used
 * from any thread.
 */
#ifndef TARN_DEVICE_H
#define TARN_DEVICE_H

#include "status.h"
#include "writer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_device;

struct tarn_device_info {
    uint32_t struct_size;  /* in: sizeof(struct tarn_device_info) */
    int ordinal;           /* device number, from 0 */
    const char *backend;   /* "sim" or "cuda"; static storage */
    uint64_t total_memory; /* bytes */
    uint64_t granularity;  /* of virtual memory mappings, bytes */
};

/* Opens the device that `spec` names:
 *   "cuda", "cuda:N"   the first GPU, or GPU N in CUDA's numbering (CUDA_VISIBLE_DEVICES applies)
 *   "sim", "sim:SIZE"  a simulated device of 80 GiB, or of SIZE: a number of bytes, or a number
 *                      with KiB, MiB, GiB or TiB ("sim:141GiB")
 *   "sim:SIZE,backed"  the same with host memory behind it, so that contents can be copied in and
 *                      out; touched pages cost host memory
 *   NULL               the first GPU; without an NVIDIA driver or a GPU, a simulated, backed device
 *                      of 80 GiB
 * Caller owns *device_out, close with tarn_device_close.
 *
 * A GPU is used through its primary context, which the CUDA runtime also uses: streams and pointers
 * are interchangeable with the runtime and the driver, and the calling thread's current context is
 * preserved. A GPU may be opened several times. The driver must support CUDA 11.4.
 *
 * A forked child cannot use its parent's devices, of either kind, nor objects created on them:
 * every call fails immediately, with TARN_ERR_DEVICE for the device and TARN_ERR_STATE for the
 * rest, whatever the parent's other threads were doing at the fork. Functions without a status do
 * nothing or return 0, false or NULL. Closing and destroying do nothing: the parent keeps
 * ownership. A child may open its own device (a GPU only if the parent had not used CUDA before the
 * fork).
 *
 * Fails with TARN_ERR_INVALID_ARGUMENT for any other spec and for a GPU number that does not exist,
 * TARN_ERR_NOT_FOUND when a GPU is named but there is no driver or no GPU, TARN_ERR_NOT_SUPPORTED
 * for a driver that is too old or incomplete, TARN_ERR_DEVICE when the driver or the GPU fails. */
TARN_API enum tarn_status tarn_device_open(const char *spec, struct tarn_device **device_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* All allocators on the device must have been destroyed. NULL is allowed. */
TARN_API void tarn_device_close(struct tarn_device *device);

/* Fills *info_out. Fields beyond struct_size are not written. */
TARN_API void tarn_device_get_info(const struct tarn_device *device,
                                   struct tarn_device_info *info_out);

/* Free and total bytes as the driver reports them, other processes included: PyTorch's
 * mem_get_info. TARN_ERR_DEVICE. */
TARN_API enum tarn_status tarn_device_memory_info(struct tarn_device *device, uint64_t *free_out,
                                                  uint64_t *total_out) TARN_MUST_CHECK;

#define TARN_PROCESS_BYTES_UNKNOWN UINT64_MAX

/* Receives a process id and the bytes of the device that it uses, TARN_PROCESS_BYTES_UNKNOWN where
 * the driver does not report them (in some containers). */
typedef void (*tarn_process_visitor)(void *context, int64_t process, uint64_t used);

/* Visits the processes that use the device, this one included: for a GPU those that NVIDIA's
 * management library (NVML, part of the driver) reports, for a simulated device this process once
 * it has allocated memory. Takes milliseconds. `visit` must not use the device. TARN_ERR_NOT_FOUND
 * without NVML, TARN_ERR_NOT_READY when NVML finds no driver, TARN_ERR_DEVICE when it fails,
 * TARN_ERR_HOST_MEMORY; after a failure `visit` was not called. */
TARN_API enum tarn_status tarn_device_walk_processes(struct tarn_device *device,
                                                     tarn_process_visitor visit, void *context,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Writes the text of torch.cuda.list_gpu_processes, without a final newline: a line "GPU:0" with
 * the device's number on this machine, then one line per process, or a sentence. Where the driver
 * does not report the bytes the line says "unknown"; PyTorch fails there. Errors as above and those
 * of the writer, except that PyTorch's sentence replaces TARN_ERR_NOT_READY. */
TARN_API enum tarn_status tarn_device_list_processes(struct tarn_device *device,
                                                     const struct tarn_writer *writer,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
