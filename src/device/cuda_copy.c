/* SPDX-License-Identifier: MIT */
/* Copies on a GPU, and access to other GPUs. With unified addressing the driver derives the
 * location from the address. */
#include "device/cuda_device.h"

#include "base/assertion.h"

void tn_cuda_op_peer_reaches(struct tn_cuda_call *call, struct tarn_device *peer, bool *reaches_out)
{
    const struct tn_cuda *other = tn_cuda_from(peer);
    int can = 0;

    tn_assert(other);
    if (tn_cuda_did(
            call, "cuDeviceCanAccessPeer",
            call->cuda->driver.cuDeviceCanAccessPeer(&can, call->cuda->device, other->device))) {
        *reaches_out = can != 0;
    }
}

void tn_cuda_op_peer_enable(struct tn_cuda_call *call, struct tarn_device *peer)
{
    const struct tn_cuda *other = tn_cuda_from(peer);

    tn_assert(other);
    const int result = call->cuda->driver.cuCtxEnablePeerAccess(other->context, 0);

    if (result != TN_CU_PEER_ACCESS_ALREADY_ENABLED) {
        (void)tn_cuda_did(call, "cuCtxEnablePeerAccess", result);
    }
}

enum tarn_status tn_cuda_copy(struct tarn_device *device, const struct tn_copy *copy,
                              tarn_stream stream)
{
    struct tn_cuda_call call;

    if (!tn_cuda_begin(&call, device, TN_CUDA_TAKES)) {
        return tn_cuda_end(&call);
    }
    const struct tn_cuda_driver *driver = &call.cuda->driver;

    if (copy->by_peer) {
        (void)tn_cuda_did(&call, "cuMemcpyPeerAsync",
                          driver->cuMemcpyPeerAsync(
                              copy->to, tn_cuda_from(copy->to_device)->context, copy->from,
                              tn_cuda_from(copy->from_device)->context, copy->size, stream));
    } else {
        (void)tn_cuda_did(&call, "cuMemcpyAsync",
                          driver->cuMemcpyAsync(copy->to, copy->from, copy->size, stream));
    }
    return tn_cuda_end(&call);
}
