/* SPDX-License-Identifier: MIT */
/*
 * Patterns of allocation that programs make, each timed as nanoseconds per allocation and free.
 *
 *   hot      one size, allocated and freed over and over
 *   ladder   256 allocations, freed in reverse, as an autograd tape does
 *   churn    random replacement among many live blocks
 *   threads  several threads, each with its own stream or all on one
 *
 * Sizes are drawn log-uniformly from a seeded generator, so that every allocator gets the same.
 * A figure is the median of several repeats; the spread is from the fastest to the slowest.
 */
#ifndef BENCH_PATTERNS_H
#define BENCH_PATTERNS_H

#include <stdbool.h>
#include <stdint.h>

/* What is measured. Both functions are called from any thread. */
struct bench_allocator {
    const char *name;
    void *context;
    uint64_t (*alloc)(void *context, uint64_t size, uint64_t stream); /* never 0 */
    void (*free)(void *context, uint64_t ptr, uint64_t stream);
    void (*thread_begin)(void *context); /* in each thread before it starts; may be NULL */
    const uint64_t *streams;             /* at least BENCH_THREADS_MAX */
};

enum {
    BENCH_THREADS_MAX = 16,
    BENCH_REPEATS = 7
};

struct bench_figure {
    double median; /* ns per allocation and free; of threads: wall time over all pairs of all */
    double fastest;
    double slowest;
};

/* Runs every pattern; `report` gets each as it is done. `scale` multiplies the number of
 * operations. */
void bench_run(const struct bench_allocator *allocator, double scale,
               void (*report)(void *context, const char *allocator, const char *pattern,
                              const struct bench_figure *figure),
               void *report_context);

#endif
