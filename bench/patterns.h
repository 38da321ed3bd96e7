/* SPDX-License-Identifier: MIT */
/*
 * Patterns of allocation that programs make, each timed as nanoseconds per allocation and free.
 *
 *   hot      one size, allocated and freed over and over
 *   ladder   256 allocations, freed in reverse, as an autograd tape does
 *   churn    random replacement among many live blocks
 *   threads  several threads, each with its own stream or all on one: wall time over all pairs of
 *            all threads; in reverse order, or (threads_churn) random replacement of 1,024 blocks
 *
 * Hot pairs also come in situations that have nothing to do with them: while blocks of other
 * streams wait for events, while another stream's requests are routed to a private pool.
 *
 * Sizes are drawn from a seeded generator, so that every allocator gets the same.
 */
#ifndef BENCH_PATTERNS_H
#define BENCH_PATTERNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    BENCH_THREADS_MAX = 16,
    BENCH_REPEATS = 7
};

/* What is the case while a pattern runs. */
enum bench_situation {
    BENCH_ORDINARY,
    BENCH_PENDING, /* `count` freed blocks wait for a stream each */
    BENCH_ROUTED   /* another stream's requests go to a private pool */
};

/* What is measured. Both functions are called from any thread. */
struct bench_allocator {
    const char *name;
    const char *version; /* of somebody else's allocator, without a comma; may be NULL */
    void *context;
    uint64_t (*alloc)(void *context, uint64_t size, uint64_t stream); /* never 0 */
    void (*free)(void *context, uint64_t ptr, uint64_t stream);
    void (*thread_begin)(void *context); /* in each thread before it starts; may be NULL */
    uint64_t streams[BENCH_THREADS_MAX];

    /* Begins and ends a situation; NULL: there are none. */
    void (*enter)(void *context, enum bench_situation situation, int count);
    void (*leave)(void *context, enum bench_situation situation, int count);
};

size_t bench_pattern_count(void);
const char *bench_pattern_name(size_t pattern);

/* Of these a run may be made longer or shorter: what a pair costs does not depend on it. Churn in
 * one thread is not steady: it starts from memory laid out in the order of its first requests. */
bool bench_pattern_is_steady(size_t pattern);

/* It wants an allocator with situations. */
bool bench_pattern_has_situation(size_t pattern);

/* Runs it once; `scale` multiplies the number of operations. Nanoseconds per pair. */
double bench_pattern_run(size_t pattern, const struct bench_allocator *allocator, double scale);

#ifdef __cplusplus
}
#endif

#endif
