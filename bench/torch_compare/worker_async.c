/* SPDX-License-Identifier: MIT */
/* cudaMallocAsync as somebody would use it who wants no other allocator: on the device's default
 * pool, which gives nothing back to the system. */
#include "worker.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void must(cudaError_t status, const char *what)
{
    if (status != cudaSuccess) {
        (void)fprintf(stderr, "worker_async: %s: %s\n", what, cudaGetErrorString(status));
        exit(1);
    }
}

static uint64_t async_alloc(void *context, uint64_t size, uint64_t stream)
{
    void *memory = NULL;

    (void)context;
    must(cudaMallocAsync(&memory, size, (cudaStream_t)stream), "cudaMallocAsync");
    return (uint64_t)memory;
}

static void async_free(void *context, uint64_t ptr, uint64_t stream)
{
    (void)context;
    must(cudaFreeAsync((void *)ptr, (cudaStream_t)stream), "cudaFreeAsync");
}

static void async_thread_begin(void *context)
{
    (void)context;
    must(cudaSetDevice(0), "cudaSetDevice");
}

int main(void)
{
    struct bench_allocator measured = {
        .name = "cudaMallocAsync",
        .alloc = async_alloc,
        .free = async_free,
        .thread_begin = async_thread_begin,
    };
    uint64_t keep_all = UINT64_MAX;
    cudaMemPool_t pool;

    must(cudaSetDevice(0), "cudaSetDevice");
    must(cudaDeviceGetDefaultMemPool(&pool, 0), "cudaDeviceGetDefaultMemPool");
    must(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all),
         "cudaMemPoolSetAttribute");
    for (int i = 0; i < BENCH_THREADS_MAX; i++) {
        cudaStream_t stream;

        must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
        measured.streams[i] = (uint64_t)stream;
    }
    return worker_serve(&measured);
}
