/* SPDX-License-Identifier: MIT */
/*
 * pairs LIVE FRAMES: nanoseconds per cuMemAlloc with its cuMemFree, LIVE of them alive, called
 * below FRAMES functions; the best of five times.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    PAIRS = 50000,
    LIVE_MAX = 1 << 14,
    TIMES = 5
};

int cuMemAlloc_v2(uint64_t *address, size_t size);
int cuMemFree_v2(uint64_t address);

static uint64_t blocks[LIVE_MAX];

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static double measure(size_t live)
{
    const double start = now_ns();

    for (size_t i = 0; i < PAIRS; i++) {
        if (cuMemFree_v2(blocks[i % live]) || cuMemAlloc_v2(&blocks[i % live], 4096)) {
            abort();
        }
    }
    return (now_ns() - start) / PAIRS;
}

/* Not a loop and not a last call, so that each turn has a frame. */
__attribute__((noinline)) static double below(size_t frames, size_t live)
{
    const double ns = frames > 1 ? below(frames - 1, live) : measure(live);

    __asm__ volatile("" ::: "memory");
    return ns;
}

int main(int argc, char **argv)
{
    const size_t live = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    const size_t frames = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    double best = 0;

    if (live == 0 || live > LIVE_MAX) {
        return 2;
    }
    for (size_t i = 0; i < live; i++) {
        (void)cuMemAlloc_v2(&blocks[i], 4096);
    }
    for (int i = 0; i < TIMES; i++) {
        const double ns = below(frames, live);

        best = i == 0 || ns < best ? ns : best;
    }
    (void)printf("%.0f\n", best);
    return 0;
}
