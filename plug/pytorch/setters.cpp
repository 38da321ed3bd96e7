/* SPDX-License-Identifier: MIT */
/*
 * The fallback: functions for torch.cuda.memory.CUDAPluggableAllocator and its setters, where the
 * class of torch_allocator.cpp cannot be compiled. Nothing here depends on torch. A failure is a
 * std::runtime_error, which torch turns into RuntimeError, also when memory has run out: torch's
 * own class for that is not known here. A destructor must not throw, so a failed free of a valid
 * pointer leaves the block allocated and its reason for tarn_devices_last_error.
 *
 * tarn_torch_pool_alloc and tarn_torch_pool_free serve a torch.cuda.MemPool, whose allocator caches
 * and retries by itself: null on failure, and freed memory returns to the device. That allocator may
 * be the class, and frees under its locks, so they have a table of devices apart.
 */
#include "plug/pytorch/glue.h"

#include <stdexcept>
#include <utility>

using namespace tarn_torch;

using PoolId = std::pair<unsigned long long, unsigned long long>; /* torch's MempoolId_t */

void tarn_torch::conclude(tarn_status status, const tarn_error &error)
{
    if (status) {
        throw std::runtime_error(error.text);
    }
}

extern "C" {

TARN_API void *tarn_torch_alloc(size_t size, int device, void *stream)
{
    tarn_ptr ptr = 0;
    tarn_error error;
    const tarn_status status =
        tarn_devices_alloc(devices, device, size, ptr_of(stream), &ptr, &error);

    return conclude_alloc(status, ptr, error);
}

TARN_API void tarn_torch_free(void *ptr, size_t /*size*/, int /*device*/, void * /*stream*/)
{
    tarn_error error;
    const tarn_status status = ptr ? tarn_devices_free(devices, ptr_of(ptr), &error) : TARN_OK;

    conclude_free(status, error);
}

/* Null without host memory for it. */
TARN_API tarn_devices *tarn_torch_pool_devices(void)
{
    static tarn_devices *const made = [] {
        tarn_devices *table = nullptr;

        attempt(tarn_devices_create, &table);
        return table;
    }();

    return made;
}

TARN_API void *tarn_torch_pool_alloc(size_t size, int device, void *stream)
{
    tarn_ptr ptr = 0;

    if (tarn_devices *const table = tarn_torch_pool_devices()) {
        attempt(tarn_devices_alloc, table, device, size, ptr_of(stream), &ptr);
    }
    return pointer_of(ptr);
}

TARN_API void tarn_torch_pool_free(void *ptr, size_t /*size*/, int /*device*/, void * /*stream*/)
{
    tarn_devices *const table = tarn_torch_pool_devices();

    if (ptr && table) {
        attempt(tarn_devices_free, table, ptr_of(ptr));
        attempt(tarn_devices_empty_pool, table, tarn_pool_id{0, 0});
    }
}

/* torch.cuda.empty_cache */
TARN_API void tarn_torch_reset(void)
{
    call(tarn_devices_empty_pool, devices, tarn_pool_id{0, 0});
}

TARN_API void tarn_torch_set_memory_fraction(double fraction, int device)
{
    call(tarn_allocator_set_memory_fraction, allocator_of(device), fraction);
}

TARN_API void *tarn_torch_base_alloc(void *ptr, size_t *size_out)
{
    tarn_ptr base = 0;

    call(tarn_allocator_base_allocation, owner_of(ptr), ptr_of(ptr), &base, size_out);
    return pointer_of(base);
}

TARN_API void tarn_torch_record_stream(void *ptr, void *stream)
{
    if (ptr) {
        call(tarn_allocator_record_stream, owner_of(ptr), ptr_of(ptr), ptr_of(stream));
    }
}

/* Any use may be a capture. */
TARN_API void tarn_torch_begin_pool(int device, PoolId id, Filter filter)
{
    call(begin_pool, device, tarn_pool_id{id.first, id.second}, true, std::move(filter));
}

TARN_API void tarn_torch_end_pool(int device, PoolId id)
{
    call(tarn_devices_end_pool, devices, device, tarn_pool_id{id.first, id.second});
}

/* Called by destructors. */
TARN_API void tarn_torch_release_pool(int device, PoolId id)
{
    if (tarn_allocator *const allocator = tarn_devices_find(devices, device)) {
        attempt(tarn_allocator_release_pool, allocator, tarn_pool_id{id.first, id.second});
    }
}
}
