/* SPDX-License-Identifier: MIT */
/*
 * GPU memory shared between processes: plain memory by the driver's handle, pages by file
 * descriptors.
 */
#include "device/cuda_device.h"

#include "base/os_process.h"

#include <inttypes.h>
#include <string.h>

static_assert(sizeof(struct tn_cu_ipc_handle) == sizeof(struct tn_ipc_handle),
              "a handle is the driver's");

void tn_cuda_op_ipc_export(struct tn_cuda_call *call, tarn_ptr address,
                           struct tn_ipc_handle *handle_out)
{
    struct tn_cu_ipc_handle handle;

    if (tn_cuda_did(call, "cuIpcGetMemHandle",
                    call->cuda->driver.cuIpcGetMemHandle(&handle, address))) {
        memcpy(handle_out, &handle, sizeof handle);
    }
}

/* Actual size of an opened allocation. */
static bool size_ask(struct tn_cuda_call *call, uint64_t address, uint64_t *size_out)
{
    uint64_t base = 0;
    size_t size = 0;

    if (!tn_cuda_did(call, "cuMemGetAddressRange",
                     call->cuda->driver.cuMemGetAddressRange_v2(&base, &size, address))) {
        return false;
    }
    if (address < base || address - base > size) {
        tn_cuda_refuse(call, "the driver opened %#" PRIx64 " outside of its memory", address);
        return false;
    }
    *size_out = size - (address - base);
    return true;
}

void tn_cuda_op_ipc_open(struct tn_cuda_call *call, const struct tn_ipc_handle *given,
                         tarn_ptr *address_out, uint64_t *size_out)
{
    struct tn_cu_ipc_handle handle;
    uint64_t address = 0;

    memcpy(&handle, given, sizeof handle);
    if (tn_cuda_did(call, "cuIpcOpenMemHandle",
                    call->cuda->driver.cuIpcOpenMemHandle_v2(&address, handle,
                                                             TN_CU_IPC_LAZY_PEER_ACCESS))) {
        if (size_ask(call, address, size_out)) {
            *address_out = address;
        } else {
            (void)call->cuda->driver.cuIpcCloseMemHandle(address);
        }
    }
}

void tn_cuda_op_ipc_close(struct tn_cuda_call *call, tarn_ptr address)
{
    (void)tn_cuda_did(call, "cuIpcCloseMemHandle", call->cuda->driver.cuIpcCloseMemHandle(address));
}

/* Fails the call and returns false if the GPU does not support sharing pages. */
static bool share_check(struct tn_cuda_call *call)
{
    const bool can = call->cuda->page_prop.requested_handle_types == TN_CU_MEM_HANDLE_POSIX_FD;

    if (!can) {
        tn_cuda_refuse(call,
                       "GPU %d cannot share pages by file descriptors: without "
                       "expandable_segments memory can be shared",
                       call->cuda->base.ordinal);
    }
    return can;
}

void tn_cuda_op_page_export(struct tn_cuda_call *call, tn_page_handle page, int *descriptor_out)
{
    int descriptor = -1;

    if (share_check(call) && tn_cuda_did(call, "cuMemExportToShareableHandle",
                                         call->cuda->driver.cuMemExportToShareableHandle(
                                             &descriptor, page, TN_CU_MEM_HANDLE_POSIX_FD, 0))) {
        *descriptor_out = descriptor;
    }
}

/* Duplicates the other process's descriptor; -1 after failing the call. */
static int descriptor_fetch(struct tn_cuda_call *call, int64_t process, int descriptor)
{
    bool refused = false;
    const int taken = tn_os_descriptor_take(process, descriptor, &refused);

    if (taken < 0 && refused) {
        tn_cuda_refuse(call,
                       "the system does not let this process take descriptors of process %" PRId64
                       ": that needs the right to trace it (prctl PR_SET_PTRACER there, or the "
                       "capability SYS_PTRACE here)",
                       process);
    } else if (taken < 0) {
        tn_cuda_refuse(call,
                       "process %" PRId64 " has no descriptor %d: it has ended, or freed the "
                       "memory that it shared",
                       process, descriptor);
    }
    return taken;
}

void tn_cuda_op_page_import(struct tn_cuda_call *call, int64_t process, int descriptor,
                            uint64_t size, tn_page_handle *page_out)
{
    uint64_t page = 0;
    int taken = -1;

    (void)size; /* mapping fails if it is wrong */
    if (share_check(call)) {
        taken = descriptor_fetch(call, process, descriptor);
    }
    if (taken >= 0 && tn_cuda_did(call, "cuMemImportFromShareableHandle",
                                  call->cuda->driver.cuMemImportFromShareableHandle(
                                      &page, (void *)(intptr_t)taken, TN_CU_MEM_HANDLE_POSIX_FD))) {
        *page_out = page;
    }
    tn_os_descriptor_close(taken);
}
