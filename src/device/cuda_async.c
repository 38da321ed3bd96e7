/* SPDX-License-Identifier: MIT */
/*
 * Stream-ordered memory of a GPU: the driver's default pool. By default that pool releases all free
 * memory whenever a stream is synchronized. The first allocation here makes it keep freed memory,
 * as PyTorch's cudaMallocAsync backend does; if the allocator does not use the pool, its settings
 * are unchanged.
 */
#include "device/cuda_device.h"

static bool pool_check(struct tn_cuda_call *call)
{
    if (!call->cuda->pool) {
        tn_cuda_refuse(call, "GPU %d has no memory pools, which backend:cudaMallocAsync needs",
                       call->cuda->base.ordinal);
    }
    return call->cuda->pool != NULL;
}

static bool attribute_set(struct tn_cuda_call *call, int attribute, uint64_t value)
{
    return tn_cuda_did(
        call, "cuMemPoolSetAttribute",
        call->cuda->driver.cuMemPoolSetAttribute(call->cuda->pool, attribute, &value));
}

static bool attribute_get(struct tn_cuda_call *call, int attribute, uint64_t *value_out)
{
    return tn_cuda_did(
        call, "cuMemPoolGetAttribute",
        call->cuda->driver.cuMemPoolGetAttribute(call->cuda->pool, attribute, value_out));
}

/* Harmless if two threads do it. */
static bool pool_prepare(struct tn_cuda_call *call)
{
    atomic_bool *ready = &call->cuda->pool_is_ready;

    if (atomic_load_explicit(ready, memory_order_relaxed)) {
        return true;
    }
    const bool done = attribute_set(call, TN_CU_POOL_RELEASE_THRESHOLD, UINT64_MAX);
    atomic_store_explicit(ready, done, memory_order_relaxed);
    return done;
}

void tn_cuda_op_pool_alloc(struct tn_cuda_call *call, uint64_t size, tarn_stream stream,
                           tarn_ptr *address_out)
{
    uint64_t address = 0;

    if (pool_check(call) && pool_prepare(call) &&
        tn_cuda_did(
            call, "cuMemAllocFromPoolAsync",
            call->cuda->driver.cuMemAllocFromPoolAsync(&address, size, call->cuda->pool, stream))) {
        *address_out = address;
    }
}

void tn_cuda_op_pool_free(struct tn_cuda_call *call, tarn_ptr address, tarn_stream stream)
{
    if (pool_check(call)) {
        (void)tn_cuda_did(call, "cuMemFreeAsync",
                          call->cuda->driver.cuMemFreeAsync(address, stream));
    }
}

void tn_cuda_op_pool_trim(struct tn_cuda_call *call, uint64_t keep)
{
    if (pool_check(call)) {
        (void)tn_cuda_did(call, "cuMemPoolTrimTo",
                          call->cuda->driver.cuMemPoolTrimTo(call->cuda->pool, keep));
    }
}

static void pool_ask(struct tn_cuda_call *call, int reserved, int used, uint64_t *reserved_out,
                     uint64_t *used_out)
{
    uint64_t reserved_bytes = 0;
    uint64_t used_bytes = 0;

    if (pool_check(call) && attribute_get(call, reserved, &reserved_bytes) &&
        attribute_get(call, used, &used_bytes)) {
        *reserved_out = reserved_bytes;
        *used_out = used_bytes;
    }
}

void tn_cuda_op_pool_info(struct tn_cuda_call *call, uint64_t *reserved_out, uint64_t *used_out)
{
    pool_ask(call, TN_CU_POOL_RESERVED_CURRENT, TN_CU_POOL_USED_CURRENT, reserved_out, used_out);
}

void tn_cuda_op_pool_peaks(struct tn_cuda_call *call, uint64_t *reserved_out, uint64_t *used_out)
{
    pool_ask(call, TN_CU_POOL_RESERVED_HIGH, TN_CU_POOL_USED_HIGH, reserved_out, used_out);
}

void tn_cuda_op_pool_reset_peaks(struct tn_cuda_call *call)
{
    /* The driver accepts only 0, which resets the peak to the current value. */
    if (pool_check(call) && attribute_set(call, TN_CU_POOL_RESERVED_HIGH, 0)) {
        (void)attribute_set(call, TN_CU_POOL_USED_HIGH, 0);
    }
}
