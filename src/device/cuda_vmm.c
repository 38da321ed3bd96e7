/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory of a GPU. If the GPU supports it, pages can be exported as file descriptors and
 * accessed by network cards, as in PyTorch; neither can be added to a page later.
 */
#include "device/cuda_device.h"

#include <inttypes.h>

static bool vmm_check(struct tn_cuda_call *call)
{
    if (!call->cuda->has_virtual_memory) {
        tn_cuda_refuse(call,
                       "GPU %d has no virtual memory management, which expandable segments "
                       "need",
                       call->cuda->base.ordinal);
    }
    return call->cuda->has_virtual_memory;
}

void tn_cuda_op_va_reserve(struct tn_cuda_call *call, uint64_t size, tarn_ptr *address_out)
{
    uint64_t address = 0;

    if (vmm_check(call) &&
        tn_cuda_did(call, "cuMemAddressReserve",
                    call->cuda->driver.cuMemAddressReserve(&address, size, 0, 0, 0))) {
        *address_out = address;
    }
}

void tn_cuda_op_va_release(struct tn_cuda_call *call, tarn_ptr address, uint64_t size)
{
    (void)tn_cuda_did(call, "cuMemAddressFree", call->cuda->driver.cuMemAddressFree(address, size));
}

void tn_cuda_op_page_create(struct tn_cuda_call *call, uint64_t size, tn_page_handle *page_out)
{
    uint64_t page = 0;

    if (vmm_check(call) &&
        tn_cuda_did(call, "cuMemCreate",
                    call->cuda->driver.cuMemCreate(&page, size, &call->cuda->page_prop, 0))) {
        *page_out = page;
    }
}

void tn_cuda_op_page_release(struct tn_cuda_call *call, tn_page_handle page)
{
    (void)tn_cuda_did(call, "cuMemRelease", call->cuda->driver.cuMemRelease(page));
}

static bool access_give(struct tn_cuda_call *call, uint64_t address, uint64_t size, int ordinal)
{
    const struct tn_cu_access access = {{TN_CU_MEM_LOCATION_DEVICE, ordinal},
                                        TN_CU_MEM_ACCESS_READ_WRITE};

    return tn_cuda_did(call, "cuMemSetAccess",
                       call->cuda->driver.cuMemSetAccess(address, size, &access, 1));
}

void tn_cuda_op_map(struct tn_cuda_call *call, tarn_ptr address, uint64_t size, tn_page_handle page)
{
    if (vmm_check(call) &&
        tn_cuda_did(call, "cuMemMap", call->cuda->driver.cuMemMap(address, size, 0, page, 0)) &&
        !access_give(call, address, size, call->cuda->device)) {
        /* Report the first failure. A remaining mapping keeps its page alive, which is harmless. */
        (void)call->cuda->driver.cuMemUnmap(address, size);
    }
}

void tn_cuda_op_unmap(struct tn_cuda_call *call, tarn_ptr address, uint64_t size)
{
    (void)tn_cuda_did(call, "cuMemUnmap", call->cuda->driver.cuMemUnmap(address, size));
}

void tn_cuda_op_va_grant(struct tn_cuda_call *call, tarn_ptr address, uint64_t size,
                         int peer_ordinal)
{
    if (vmm_check(call)) {
        (void)access_give(call, address, size, peer_ordinal);
    }
}
