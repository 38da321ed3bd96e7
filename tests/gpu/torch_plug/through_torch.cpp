/* SPDX-License-Identifier: MIT */
/*
 * torch's C++ entry points for memory, whichever allocator is installed, as functions that
 * torch_cases.py loads with ctypes: what Python cannot reach, and times in ns per allocation and
 * free.
 */
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/cuda/memory_snapshot.h>

#include <cuda_runtime_api.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

namespace memory = c10::cuda::CUDACachingAllocator;

namespace {

double now()
{
    using ns = std::chrono::duration<double, std::nano>;

    return ns(std::chrono::steady_clock::now().time_since_epoch()).count();
}

cudaStream_t current()
{
    return c10::cuda::getCurrentCUDAStream().stream();
}

std::atomic<long> tracked[16]; /* by action */

} // namespace

extern "C" {

/* Of a loop that keeps the arithmetic units of one CPU busy: longer where something else uses
 * them. */
double time_loop(long count)
{
    uint64_t a = 1;
    uint64_t b = 2;
    uint64_t c = 3;
    uint64_t d = 4;
    const double begin = now();

    for (long i = 0; i < count; i++) {
        a = a * 3 + 1;
        b = (b ^ (b >> 7)) + 1;
        c += (c << 1) ^ 1;
        d = (d << 5) - d + 1;
        asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d));
    }
    return (now() - begin) / static_cast<double>(count);
}

double time_hot(size_t size, long count)
{
    cudaStream_t const stream = current();
    const double begin = now();

    for (long i = 0; i < count; i++) {
        memory::raw_delete(memory::raw_alloc_with_stream(size, stream));
    }
    return (now() - begin) / static_cast<double>(count);
}

/* Sizes from 512 bytes to 8 MiB, one after the other. */
double time_sizes(long count)
{
    cudaStream_t const stream = current();
    const double begin = now();

    for (long i = 0; i < count; i++) {
        memory::raw_delete(memory::raw_alloc_with_stream(size_t{512} << (i % 15), stream));
    }
    return (now() - begin) / static_cast<double>(count);
}

/* 256 allocations of mixed sizes up to 8 MiB, freed in reverse, as a backward pass does. */
double time_ladder(long count)
{
    constexpr size_t height = 256;
    cudaStream_t const stream = current();
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> logarithm(std::log(512.0), std::log(8.0 * (1 << 20)));
    std::vector<size_t> sizes(height);
    std::vector<void *> kept(height);
    const long rounds = count / static_cast<long>(height);
    double begin = 0;

    for (auto &size : sizes) {
        size = static_cast<size_t>(std::exp(logarithm(random)));
    }
    for (long round = -10; round < rounds; round++) {
        begin = round == 0 ? now() : begin;
        for (size_t i = 0; i < height; i++) {
            kept[i] = memory::raw_alloc_with_stream(sizes[i], stream);
        }
        for (size_t i = height; i-- > 0;) {
            memory::raw_delete(kept[i]);
        }
    }
    return (now() - begin) / static_cast<double>(rounds) / static_cast<double>(height);
}

double time_churn(int live, size_t largest, long count)
{
    cudaStream_t const stream = current();
    std::mt19937_64 random(1);
    std::uniform_real_distribution<double> logarithm(std::log(512.0),
                                                     std::log(static_cast<double>(largest)));
    std::vector<size_t> sizes(65536);
    std::vector<size_t> places(65536);
    std::vector<void *> kept(static_cast<size_t>(live));
    double begin = 0;

    for (size_t i = 0; i < sizes.size(); i++) {
        sizes[i] = static_cast<size_t>(std::exp(logarithm(random)));
        places[i] = random() % kept.size();
    }
    for (auto &ptr : kept) {
        ptr = memory::raw_alloc_with_stream(sizes[random() % sizes.size()], stream);
    }
    for (long i = -4L * live; i < count; i++) {
        const auto at = static_cast<size_t>(i + 4L * live);
        void *&ptr = kept[places[at % places.size()]];

        begin = i == 0 ? now() : begin;
        memory::raw_delete(ptr);
        ptr = memory::raw_alloc_with_stream(sizes[at * 7 % sizes.size()], stream);
    }
    const double result = (now() - begin) / static_cast<double>(count);

    for (void *ptr : kept) {
        memory::raw_delete(ptr);
    }
    return result;
}

/* Wall time over the pairs of all threads, each on its own stream. */
double time_threads(int threads, long count)
{
    std::vector<std::thread> running;
    const double begin = now();

    for (int i = 0; i < threads; i++) {
        running.emplace_back([count] {
            cudaStream_t const stream = c10::cuda::getStreamFromPool(false, 0).stream();

            for (long k = 0; k < count / 4; k++) {
                void *kept[4];

                for (int a = 0; a < 4; a++) {
                    kept[a] = memory::raw_alloc_with_stream(size_t{512} << (a * 3), stream);
                }
                for (int a = 3; a >= 0; a--) {
                    memory::raw_delete(kept[a]);
                }
            }
        });
    }
    for (auto &thread : running) {
        thread.join();
    }
    return (now() - begin) / static_cast<double>(count) / threads;
}

/* One size, while freed blocks wait for a busy side stream; negative if it was not busy to the
 * end. */
double time_pending(size_t size, long count, int waiting)
{
    const auto side = c10::cuda::getStreamFromPool(false, 0);
    std::vector<c10::DataPtr> blocks;
    void *load = nullptr;

    for (int i = 0; i < waiting; i++) {
        blocks.push_back(memory::get()->allocate(1 << 20));
        memory::recordStream(blocks.back(), side);
    }
    if (cudaMalloc(&load, size_t{1} << 33) != cudaSuccess) {
        return 0;
    }
    for (int i = 0; i < 200; i++) {
        (void)cudaMemsetAsync(load, i, size_t{1} << 33, side.stream());
    }
    blocks.clear();
    const double result = time_hot(size, count);
    const bool busy = cudaStreamQuery(side.stream()) == cudaErrorNotReady;

    (void)cudaDeviceSynchronize();
    (void)cudaFree(load);
    return busy ? result : -result;
}

/* The snapshot that torch pickles in C++. */
void write_snapshot(const char *path)
{
    std::ofstream(path, std::ios::binary) << torch::cuda::_memory_snapshot_pickled();
}

void track(void)
{
    memory::attachAllocatorTraceTracker([](const auto &entry) { tracked[entry.action_]++; });
}

long tracked_count(int action)
{
    return tracked[action];
}

size_t expandable_bytes(void)
{
    size_t bytes = 0;

    for (const auto &size : memory::getExpandableSegmentSizes(0)) {
        bytes += size.total_size;
    }
    return bytes;
}
}
