// SPDX-License-Identifier: MIT
// PyTorch's caching allocator through its C++ entry points, so that no Python is in the way. Its
// settings come from the environment (PYTORCH_CUDA_ALLOC_CONF). Errors are exceptions that end the
// program with their text.
#include "worker.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <cuda_runtime_api.h>

namespace caching = c10::cuda::CUDACachingAllocator;

static uint64_t torch_alloc(void *, uint64_t size, uint64_t stream)
{
    return reinterpret_cast<uint64_t>(
        caching::raw_alloc_with_stream(size, reinterpret_cast<cudaStream_t>(stream)));
}

static void torch_free(void *, uint64_t ptr, uint64_t)
{
    caching::raw_delete(reinterpret_cast<void *>(ptr));
}

static void torch_thread_begin(void *)
{
    c10::cuda::set_device(0);
}

int main()
{
    bench_allocator measured = {};

    caching::init(1);
    c10::cuda::set_device(0);
    measured.name = "torch";
    measured.alloc = torch_alloc;
    measured.free = torch_free;
    measured.thread_begin = torch_thread_begin;
    for (uint64_t &stream : measured.streams) {
        cudaStream_t created = nullptr;

        C10_CUDA_CHECK(cudaStreamCreateWithFlags(&created, cudaStreamNonBlocking));
        stream = reinterpret_cast<uint64_t>(created);
    }
    return worker_serve(&measured);
}
