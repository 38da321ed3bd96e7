/* SPDX-License-Identifier: MIT */
/*
 * The CUDA driver as a table of functions, opened at run time. Nothing else in the library knows
 * how they are found; cuda_abi.h and the driver's documentation define them.
 *
 * Functions are looked up by name and version through cuGetProcAddress if the driver has it (11.3),
 * so that the signature is the intended one in all later versions, and otherwise by the exported
 * name.
 */
#ifndef TN_DEVICE_CUDA_DRIVER_H
#define TN_DEVICE_CUDA_DRIVER_H

#include "device/cuda_abi.h"
#include "tarn/status.h"

#include <stdbool.h>

enum {
    TN_CUDA_OLDEST = 11040 /* minimum CUDA version of the driver: 11.4 */
};

/* All constant once it is open; the functions may be called from any thread. */
struct tn_cuda_driver {
    void *library;
    int version; /* maximum CUDA version of the driver: 13000 is 13.0 */
#define TN_CUDA_SYM(exported, plain, since, need, parameters) int(*exported) parameters;
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM
};

/* Opens the driver and initialises it; `path` NULL is the installed one, libcuda.so.1. It is never
 * closed. Fails with TARN_ERR_NOT_FOUND if there is no driver or it finds no GPU,
 * TARN_ERR_NOT_SUPPORTED if it is too old or lacks a function, and TARN_ERR_DEVICE if it fails to
 * initialize. */
enum tarn_status tn_cuda_driver_open(const char *path, struct tn_cuda_driver *driver_out,
                                     struct tarn_error *error) TARN_MUST_CHECK;

/* The status for a CUDA result. */
enum tarn_status tn_cuda_status(int result);

/* Whether the result means that this process can no longer use the device. */
bool tn_cuda_is_lost(int result);

/* Writes "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY, out of memory", with the driver's description,
 * truncated to `size` bytes. */
void tn_cuda_explain(const struct tn_cuda_driver *driver, const char *call, int result, char *text,
                     size_t size);

#endif
