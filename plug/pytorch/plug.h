/* SPDX-License-Identifier: MIT */
/*
 * libtarn as the allocator of PyTorch's CUDA tensors: what the Python package calls.
 *
 * There are two libraries with these functions. One is compiled against the headers of the torch
 * that it serves and holds a class derived from torch's own allocator class
 * (torch_allocator.cpp). The other needs nothing of torch and fills the setters of torch's
 * pluggable allocator (setters.cpp): the fallback where nothing can be compiled.
 *
 * Each device gets one allocator on first use, with the settings of the environment
 * (tarn_config_from_env); device N is the GPU "cuda:N", unless tarn_torch_use_device replaced it.
 * They live until the process ends, because tensors may outlive the interpreter. Any thread.
 */
#ifndef PLUG_PYTORCH_PLUG_H
#define PLUG_PYTORCH_PLUG_H

#include "tarn/allocator.h"
#include "tarn/history.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Devices 0 to TARN_TORCH_DEVICES_MAX - 1. */
enum {
    TARN_TORCH_DEVICES_MAX = 64
};

/* Uses this device for the ordinal, for example a simulated one for tests; borrowed for good.
 * TARN_ERR_STATE when the ordinal is already in use. */
TARN_API enum tarn_status tarn_torch_use_device(int ordinal, struct tarn_device *device,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* The device's allocator, borrowed: NULL before the first allocation there; opened on demand. In a
 * process that was forked after that, opening fails with TARN_ERR_STATE. */
TARN_API struct tarn_allocator *tarn_torch_find_allocator(int device);
TARN_API enum tarn_status tarn_torch_open_allocator(int device,
                                                    struct tarn_allocator **allocator_out,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Changes the settings of all devices, including those opened later, as tarn_config_update does. */
TARN_API enum tarn_status tarn_torch_configure(const char *text,
                                               struct tarn_error *error) TARN_MUST_CHECK;

/* Settings of the next device: those of the environment with later changes. */
TARN_API enum tarn_status tarn_torch_get_config(struct tarn_config *config_out,
                                                struct tarn_error *error) TARN_MUST_CHECK;

/* The latest failure that could not be thrown, because a destructor was running or torch expects no
 * exception; false, leaving *error_out untouched, when there was none. */
TARN_API bool tarn_torch_last_error(struct tarn_error *error_out);

/* The device's history, borrowed; NULL if it has none. */
TARN_API struct tarn_history *tarn_torch_find_history(int device);

#ifdef __cplusplus
}
#endif

#endif
