/* SPDX-License-Identifier: MIT */
/*
 * The fallback: functions for torch.cuda.memory.CUDAPluggableAllocator and its setters, where the
 * class of torch_allocator.cpp cannot be compiled. Nothing here depends on torch. A failure is a
 * std::runtime_error, which torch turns into RuntimeError, also when memory has run out: torch's
 * own class for that is not known here. A destructor must not throw, so a failed free of a valid
 * pointer leaves the block allocated and its reason for tarn_torch_last_error.
 *
 * tarn_torch_pool_alloc and tarn_torch_pool_free serve a torch.cuda.MemPool of torch's own
 * allocator, which caches and retries by itself: null on failure, and freed memory returns to the
 * device.
 */
#include "plug/pytorch/devices.h"

#include <stdexcept>
#include <utility>

using namespace tarn_torch;

namespace
{

using PoolId = std::pair<unsigned long long, unsigned long long>; /* torch's MempoolId_t */

/* Calls a function whose last parameter is the error. */
template <class Function, class... Arguments> void call(Function function, Arguments... arguments)
{
    tarn_error error;

    if (function(arguments..., &error)) {
        throw std::runtime_error(error.text);
    }
}

tarn_allocator *allocator_of(int device)
{
    tarn_allocator *allocator = find_allocator(device);

    if (!allocator) {
        call(tarn_torch_open_allocator, device, &allocator);
    }
    return allocator;
}

} // namespace

extern "C" {

TARN_API void *tarn_torch_alloc(size_t size, int device, void *stream)
{
    tarn_ptr ptr = 0;

    call(tarn_allocator_alloc, allocator_of(device), size, ptr_of(stream), &ptr);
    leave_hint(ptr, device);
    return pointer_of(ptr);
}

TARN_API void tarn_torch_free(void *ptr, size_t /*size*/, int device, void * /*stream*/)
{
    tarn_allocator *const allocator = find_allocator(device);
    tarn_error error;

    if (ptr && allocator) {
        const tarn_status status = tarn_allocator_free(allocator, ptr_of(ptr), &error);

        if (status == TARN_ERR_INVALID_POINTER) {
            throw std::runtime_error(error.text);
        }
        note(status, error);
    }
}

TARN_API void *tarn_torch_pool_alloc(size_t size, int device, void *stream)
{
    tarn_allocator *allocator = nullptr;
    tarn_error error;
    tarn_ptr ptr = 0;
    tarn_status status = tarn_torch_open_allocator(device, &allocator, &error);

    if (status == TARN_OK) {
        status = tarn_allocator_alloc(allocator, size, ptr_of(stream), &ptr, &error);
    }
    note(status, error);
    return pointer_of(ptr);
}

TARN_API void tarn_torch_pool_free(void *ptr, size_t /*size*/, int device, void * /*stream*/)
{
    tarn_allocator *const allocator = find_allocator(device);
    tarn_error error;

    if (ptr && allocator) {
        const tarn_status status = tarn_allocator_free(allocator, ptr_of(ptr), &error);

        note(status ? status : tarn_allocator_empty_cache(allocator, &error), error);
    }
}

/* torch.cuda.empty_cache */
TARN_API void tarn_torch_reset(void)
{
    call([](tarn_error *error) {
        return each_open([&](int /*ordinal*/, tarn_allocator *allocator) {
            return tarn_allocator_empty_cache(allocator, error);
        });
    });
}

TARN_API void tarn_torch_set_memory_fraction(double fraction, int device)
{
    call(tarn_allocator_set_memory_fraction, allocator_of(device), fraction);
}

TARN_API void *tarn_torch_base_alloc(void *ptr, size_t *size_out)
{
    tarn_error error;
    tarn_ptr base = 0;
    uint64_t size = 0;

    if (on_owner(&error, tarn_allocator_base_allocation, ptr_of(ptr), &base, &size)) {
        throw std::runtime_error(error.text);
    }
    if (size_out) {
        *size_out = size;
    }
    return pointer_of(base);
}

TARN_API void tarn_torch_record_stream(void *ptr, void *stream)
{
    tarn_error error;

    if (ptr && on_owner(&error, tarn_allocator_record_stream, ptr_of(ptr), ptr_of(stream))) {
        throw std::runtime_error(error.text);
    }
}

/* The exception of a filter would have to pass through libtarn. */
TARN_API void tarn_torch_begin_pool(int device, PoolId id, Filter filter)
{
    (void)allocator_of(device);
    call(begin_pool, device, tarn_pool_id{id.first, id.second},
         [kept = std::move(filter)](void *s) {
             try {
                 return kept(s);
             } catch (...) {
                 return false;
             }
         });
}

TARN_API void tarn_torch_end_pool(int device, PoolId id)
{
    (void)allocator_of(device);
    call(end_pool, device, tarn_pool_id{id.first, id.second});
}

/* Called by destructors. */
TARN_API void tarn_torch_release_pool(int device, PoolId id)
{
    tarn_allocator *const allocator = find_allocator(device);
    tarn_error error;

    if (allocator) {
        note(tarn_allocator_release_pool(allocator, {id.first, id.second}, &error), error);
    }
}
}
