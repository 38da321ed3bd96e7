/* SPDX-License-Identifier: MIT */
/* Pinned host memory through the driver; portable, so that it is pinned for every GPU. */
#include "device/cuda_device.h"

enum tarn_status tn_cuda_host_alloc(struct tarn_device *device, uint64_t size, void **memory_out)
{
    struct tn_cuda_call call;
    void *memory = NULL;

    if (tn_cuda_begin(&call, device, TN_CUDA_TAKES) &&
        tn_cuda_did(&call, "cuMemHostAlloc",
                    call.cuda->driver.cuMemHostAlloc(&memory, size, TN_CU_HOST_PORTABLE))) {
        *memory_out = memory;
    }
    return tn_cuda_end(&call);
}

enum tarn_status tn_cuda_host_free(struct tarn_device *device, void *memory)
{
    struct tn_cuda_call call;

    if (tn_cuda_begin(&call, device, TN_CUDA_GIVES)) {
        (void)tn_cuda_did(&call, "cuMemFreeHost", call.cuda->driver.cuMemFreeHost(memory));
    }
    return tn_cuda_end(&call);
}

enum tarn_status tn_cuda_host_register(struct tarn_device *device, void *memory, uint64_t size)
{
    struct tn_cuda_call call;

    if (tn_cuda_begin(&call, device, TN_CUDA_TAKES)) {
        (void)tn_cuda_did(
            &call, "cuMemHostRegister",
            call.cuda->driver.cuMemHostRegister_v2(memory, size, TN_CU_HOST_PORTABLE));
    }
    return tn_cuda_end(&call);
}

enum tarn_status tn_cuda_host_unregister(struct tarn_device *device, void *memory)
{
    struct tn_cuda_call call;

    if (tn_cuda_begin(&call, device, TN_CUDA_GIVES)) {
        (void)tn_cuda_did(&call, "cuMemHostUnregister",
                          call.cuda->driver.cuMemHostUnregister(memory));
    }
    return tn_cuda_end(&call);
}
