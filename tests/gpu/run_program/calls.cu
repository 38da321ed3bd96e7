/* SPDX-License-Identifier: MIT */
/*
 * calls WAY LIVE [FRAMES]: nanoseconds per cudaMalloc with its cudaFree (WAY sync), or per
 * cudaMallocAsync with its cudaFreeAsync (WAY async), LIVE of them alive, of 4 KiB to 8 MiB, called
 * below FRAMES functions; the median of five rounds. A sixth round before them is not counted.
 */
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <cuda_runtime.h>

enum {
    PAIRS = 4000,
    ROUNDS = 5
};

static bool is_async;
static std::vector<void *> blocks;
static uint32_t seed = 1;

static void check(cudaError_t error)
{
    if (error != cudaSuccess) {
        std::printf("%s\n", cudaGetErrorString(error));
        std::exit(1);
    }
}

/* The same in every run. */
static size_t draw_size()
{
    seed = seed * 1664525 + 1013904223;
    return (size_t)4096 << (seed >> 8) % 12;
}

static void allocate(void **block)
{
    check(is_async ? cudaMallocAsync(block, draw_size(), nullptr) : cudaMalloc(block, draw_size()));
}

static double measure()
{
    const auto start = std::chrono::steady_clock::now();

    for (size_t i = 0; i < PAIRS; i++) {
        void **block = &blocks[i % blocks.size()];

        check(is_async ? cudaFreeAsync(*block, nullptr) : cudaFree(*block));
        allocate(block);
    }
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start)
               .count() /
           PAIRS;
}

/* Not a loop and not a last call, so that each turn has a frame. */
__attribute__((noinline)) static double below(size_t frames)
{
    const double ns = frames > 1 ? below(frames - 1) : measure();

    __asm__ volatile("" ::: "memory");
    return ns;
}

int main(int argc, char **argv)
{
    const size_t live = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 0;
    const size_t frames = argc > 3 ? std::strtoul(argv[3], nullptr, 10) : 1;
    double ns[ROUNDS];

    if (live == 0 || live > 4096 ||
        (std::strcmp(argv[1], "sync") && std::strcmp(argv[1], "async"))) {
        return 2;
    }
    is_async = !std::strcmp(argv[1], "async");
    blocks.resize(live);
    for (void *&block : blocks) {
        allocate(&block);
    }
    (void)below(frames);
    for (double &one : ns) {
        one = below(frames);
    }
    std::sort(ns, ns + ROUNDS);
    std::printf("%.0f\n", ns[ROUNDS / 2]);
    return 0;
}
