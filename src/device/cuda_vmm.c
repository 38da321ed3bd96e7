/* SPDX-License-Identifier: MIT */
/*
 * Virtual memory of a GPU. If the GPU supports it, pages can be exported as file descriptors and
 * accessed by network cards, as in PyTorch; neither can be added to a page later.
 */
#include "device/cuda_device.h"

#include <inttypes.h>

static bool vmm_begin(struct tn_cuda_call *call, struct tarn_device *device)
{
    if (!tn_cuda_begin(call, device, TN_CUDA_TAKES)) {
        return false;
    }
    if (!call->cuda->has_virtual_memory) {
        tn_cuda_refuse(call,
                       "GPU %d has no virtual memory management, which expandable segments "
                       "need",
                       device->ordinal);
        return false;
    }
    return true;
}

enum tarn_status tn_cuda_va_reserve(struct tarn_device *device, uint64_t size,
                                    tarn_ptr *address_out)
{
    struct tn_cuda_call call;
    uint64_t address = 0;

    if (vmm_begin(&call, device) &&
        tn_cuda_did(&call, "cuMemAddressReserve",
                    call.cuda->driver.cuMemAddressReserve(&address, size, 0, 0, 0))) {
        *address_out = address;
    }
    return tn_cuda_end(&call);
}

enum tarn_status tn_cuda_va_release(struct tarn_device *device, tarn_ptr address, uint64_t size)
{
    struct tn_cuda_call call;

    if (tn_cuda_begin(&call, device, TN_CUDA_GIVES)) {
        (void)tn_cuda_did(&call, "cuMemAddressFree",
                          call.cuda->driver.cuMemAddressFree(address, size));
    }
    return tn_cuda_end(&call);
}

enum tarn_status tn_cuda_page_create(struct tarn_device *device, uint64_t size,
                                     tn_page_handle *page_out)
{
    struct tn_cuda_call call;
    uint64_t page = 0;

    if (vmm_begin(&call, device) &&
        tn_cuda_did(&call, "cuMemCreate",
                    call.cuda->driver.cuMemCreate(&page, size, &call.cuda->page_prop, 0))) {
        *page_out = page;
    }
    return tn_cuda_end(&call);
}

enum tarn_status tn_cuda_page_release(struct tarn_device *device, tn_page_handle page)
{
    struct tn_cuda_call call;

    if (tn_cuda_begin(&call, device, TN_CUDA_GIVES)) {
        (void)tn_cuda_did(&call, "cuMemRelease", call.cuda->driver.cuMemRelease(page));
    }
    return tn_cuda_end(&call);
}

static bool access_give(struct tn_cuda_call *call, uint64_t address, uint64_t size, int ordinal)
{
    const struct tn_cu_access access = {{TN_CU_MEM_LOCATION_DEVICE, ordinal},
                                        TN_CU_MEM_ACCESS_READ_WRITE};

    return tn_cuda_did(call, "cuMemSetAccess",
                       call->cuda->driver.cuMemSetAccess(address, size, &access, 1));
}

enum tarn_status tn_cuda_map(struct tarn_device *device, tarn_ptr address, uint64_t size,
                             tn_page_handle page)
{
    struct tn_cuda_call call;

    if (vmm_begin(&call, device) &&
        tn_cuda_did(&call, "cuMemMap", call.cuda->driver.cuMemMap(address, size, 0, page, 0)) &&
        !access_give(&call, address, size, call.cuda->device)) {
        /* Report the first failure. A remaining mapping keeps its page alive, which is harmless. */
        (void)call.cuda->driver.cuMemUnmap(address, size);
    }
    return tn_cuda_end(&call);
}

enum tarn_status tn_cuda_unmap(struct tarn_device *device, tarn_ptr address, uint64_t size)
{
    struct tn_cuda_call call;

    if (tn_cuda_begin(&call, device, TN_CUDA_GIVES)) {
        (void)tn_cuda_did(&call, "cuMemUnmap", call.cuda->driver.cuMemUnmap(address, size));
    }
    return tn_cuda_end(&call);
}

enum tarn_status tn_cuda_va_grant(struct tarn_device *device, tarn_ptr address, uint64_t size,
                                  int peer_ordinal)
{
    struct tn_cuda_call call;

    if (vmm_begin(&call, device)) {
        (void)access_give(&call, address, size, peer_ordinal);
    }
    return tn_cuda_end(&call);
}
