/* SPDX-License-Identifier: MIT */
/*
 * Devices: where memory comes from. A device is opened once, outlives the allocators made on it,
 * and may be used from any thread.
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
    uint64_t granularity;  /* unit of virtual memory mapping, bytes */
};

/* Opens the device that `spec` names:
 *   "cuda", "cuda:N"   the first GPU, or GPU number N as CUDA counts (CUDA_VISIBLE_DEVICES
 *                      counts);
 *   "sim", "sim:SIZE"  a simulated device of 80 GiB, or of SIZE: a number of bytes, or a number
 *                      with KiB, MiB, GiB or TiB ("sim:141GiB");
 *   "sim:SIZE,backed"  the same with host memory behind it, so that contents can be copied in and
 *                      out; what is touched costs that much;
 *   NULL               the first GPU, or a simulated, backed device of 80 GiB where no NVIDIA
 *                      driver is installed or it shows no GPU.
 * Caller owns *device_out, close with tarn_device_close.
 *
 * A GPU is used through its primary context, the one of the CUDA runtime: streams and pointers are
 * those of the runtime and the driver, and the calling thread's context stays what it was. It may
 * be opened several times. Its driver must support CUDA 11.4.
 *
 * A child that is forked afterwards cannot use the device, of whatever kind, nor anything made on
 * it: every call fails there at once, with TARN_ERR_DEVICE for the device and TARN_ERR_STATE for
 * the rest, whatever the parent's other threads were doing. Functions without a status do nothing
 * or return 0, false or NULL. Closing and destroying do nothing either: all stays the parent's, and
 * the child's copy goes when the child ends. A child may open a device of its own (a GPU only where
 * the parent had not used CUDA when it forked).
 *
 * Fails with TARN_ERR_INVALID_ARGUMENT for a spec that is none of these and a GPU that there is
 * not, TARN_ERR_NOT_FOUND when a GPU is asked for and there is no driver or none at all,
 * TARN_ERR_NOT_SUPPORTED for a driver that is too old or not complete, TARN_ERR_DEVICE when the
 * driver or the GPU fails. */
TARN_API enum tarn_status tarn_device_open(const char *spec, struct tarn_device **device_out,
                                           struct tarn_error *error) TARN_MUST_CHECK;

/* All allocators on the device must have been destroyed. NULL is allowed. */
TARN_API void tarn_device_close(struct tarn_device *device);

/* Fills *info_out; fields that do not fit in its struct_size are left out. */
TARN_API void tarn_device_get_info(const struct tarn_device *device,
                                   struct tarn_device_info *info_out);

/* Bytes that are free and bytes in all, now, as the driver sees them: other processes count.
 * PyTorch's mem_get_info. TARN_ERR_DEVICE. */
TARN_API enum tarn_status tarn_device_memory_info(struct tarn_device *device, uint64_t *free_out,
                                                  uint64_t *total_out) TARN_MUST_CHECK;

#define TARN_PROCESS_BYTES_UNKNOWN UINT64_MAX

/* Is given a process's number and the bytes of the device that it uses,
 * TARN_PROCESS_BYTES_UNKNOWN where the driver does not tell (in some containers). */
typedef void (*tarn_process_visitor)(void *context, int64_t process, uint64_t used);

/* Shows the processes that use the device, this one included: of a GPU what NVIDIA's management
 * library (NVML, part of the driver) says, of a simulated device this process, once it uses some.
 * Takes milliseconds. `visit` must not use the device. TARN_ERR_NOT_FOUND without NVML,
 * TARN_ERR_NOT_READY when that finds no driver, TARN_ERR_DEVICE when it fails,
 * TARN_ERR_HOST_MEMORY; nothing was shown then. */
TARN_API enum tarn_status tarn_device_walk_processes(struct tarn_device *device,
                                                     tarn_process_visitor visit, void *context,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* The text of torch.cuda.list_gpu_processes, which has no newline at its end: a line "GPU:0" with
 * the device's number on this machine, then a line a process, or a sentence. Where the driver does
 * not tell the bytes the line says "unknown"; PyTorch fails there. Errors as above, but for
 * TARN_ERR_NOT_READY, which is PyTorch's sentence; and what the writer returned. */
TARN_API enum tarn_status tarn_device_list_processes(struct tarn_device *device,
                                                     const struct tarn_writer *writer,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
