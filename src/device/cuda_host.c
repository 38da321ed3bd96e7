/* SPDX-License-Identifier: MIT */
/* Pinned host memory through the driver; portable, so that it is pinned for every GPU. */
#include "device/cuda_device.h"

void tn_cuda_op_host_alloc(struct tn_cuda_call *call, uint64_t size, void **memory_out)
{
    void *memory = NULL;

    if (tn_cuda_did(call, "cuMemHostAlloc",
                    call->cuda->driver.cuMemHostAlloc(&memory, size, TN_CU_HOST_PORTABLE))) {
        *memory_out = memory;
    }
}

void tn_cuda_op_host_free(struct tn_cuda_call *call, void *memory)
{
    (void)tn_cuda_did(call, "cuMemFreeHost", call->cuda->driver.cuMemFreeHost(memory));
}

void tn_cuda_op_host_register(struct tn_cuda_call *call, void *memory, uint64_t size)
{
    (void)tn_cuda_did(call, "cuMemHostRegister",
                      call->cuda->driver.cuMemHostRegister_v2(memory, size, TN_CU_HOST_PORTABLE));
}

void tn_cuda_op_host_unregister(struct tn_cuda_call *call, void *memory)
{
    (void)tn_cuda_did(call, "cuMemHostUnregister", call->cuda->driver.cuMemHostUnregister(memory));
}
