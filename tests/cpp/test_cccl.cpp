// SPDX-License-Identifier: MIT
// tarn::resource meets CCCL's own concepts and serves through its references, on the simulated
// device: compiled where CUDA's headers are. CCCL 3.1 renamed what is ordered by streams.
#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE // for CCCL 2
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <tarn/tarn.hpp>

#include <cstdio>
#include <cstdlib>

using resource = tarn::resource<cuda::mr::device_accessible>;

#if CCCL_VERSION >= 3001000
static_assert(cuda::mr::resource_with<resource, cuda::mr::device_accessible>);
static_assert(!cuda::mr::resource_with<resource, cuda::mr::host_accessible>);
using reference = cuda::mr::resource_ref<cuda::mr::device_accessible>;

static void *take(reference &from, cuda::stream_ref stream, std::size_t bytes)
{
    return from.allocate(stream, bytes, 256);
}

static void give(reference &to, cuda::stream_ref stream, void *memory, std::size_t bytes)
{
    to.deallocate(stream, memory, bytes, 256);
}
#else
static_assert(cuda::mr::async_resource_with<resource, cuda::mr::device_accessible>);
static_assert(!cuda::mr::async_resource_with<resource, cuda::mr::host_accessible>);
using reference = cuda::mr::async_resource_ref<cuda::mr::device_accessible>;

static void *take(reference &from, cuda::stream_ref stream, std::size_t bytes)
{
    return from.allocate_async(bytes, 256, stream);
}

static void give(reference &to, cuda::stream_ref stream, void *memory, std::size_t bytes)
{
    to.deallocate_async(memory, bytes, 256, stream);
}
#endif

static void check(bool holds, const char *what)
{
    if (!holds) {
        std::printf("failed: %s\n", what);
        std::exit(1);
    }
}

int main()
{
    const tarn::allocator allocator("sim:1GiB");
    resource memory(allocator);
    reference through(memory);
    const cuda::stream_ref stream{reinterpret_cast<cudaStream_t>(std::uintptr_t{48})};
    const cuda::stream_ref other{reinterpret_cast<cudaStream_t>(std::uintptr_t{64})};
    void *const first = take(through, stream, 1000);

    check(tarn_allocator_usable_size(allocator.get(), reinterpret_cast<tarn_ptr>(first)) == 1024,
          "it is the allocator's");
    give(through, stream, first, 1000);
    check(take(through, stream, 1000) == first, "the stream's cache serves it again");
    void *const second = take(through, other, 1000);

    check(second != first, "another stream has its own");
    give(through, stream, first, 1000);
    give(through, other, second, 1000);
    check(resource(allocator) == memory, "resources of one allocator are equal");
    check(allocator.stats().by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current == 0,
          "all of it went back");
    return 0;
}
