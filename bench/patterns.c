/* SPDX-License-Identifier: MIT */
#include "patterns.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- random sizes ---- */

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t random_size(uint64_t *state, double low, double high)
{
    const double unit = (double)(random_next(state) >> 11) / 9007199254740992.0;

    return (uint64_t)exp(log(low) + unit * (log(high) - log(low)));
}

static void *must_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory) {
        (void)fprintf(stderr, "bench: no host memory\n");
        exit(1);
    }
    return memory;
}

/* ---- patterns ---- */

struct pattern {
    const char *name;
    double (*run)(const struct bench_allocator *a, const struct pattern *pattern, double scale);
    uint64_t low; /* sizes in bytes; of `hot` the one size */
    uint64_t high;
    int count; /* ladder: rungs; churn: live blocks; threads: threads */
    long operations;
    bool own_stream;
};

static long scaled(long operations, double scale)
{
    const double wanted = (double)operations * scale;

    return wanted < 20 ? 20 : (long)wanted;
}

static double run_hot(const struct bench_allocator *a, const struct pattern *pattern, double scale)
{
    const long operations = scaled(pattern->operations, scale);
    const uint64_t stream = a->streams[0];

    for (int i = 0; i < 100; i++) {
        a->free(a->context, a->alloc(a->context, pattern->low, stream), stream);
    }
    const double begin = now_ns();

    for (long i = 0; i < operations; i++) {
        a->free(a->context, a->alloc(a->context, pattern->low, stream), stream);
    }
    return (now_ns() - begin) / (double)operations;
}

static void climb_ladder(const struct bench_allocator *a, const uint64_t *sizes, uint64_t *ptrs,
                         int count)
{
    const uint64_t stream = a->streams[0];

    for (int i = 0; i < count; i++) {
        ptrs[i] = a->alloc(a->context, sizes[i], stream);
    }
    for (int i = count; i > 0; i--) {
        a->free(a->context, ptrs[i - 1], stream);
    }
}

static double run_ladder(const struct bench_allocator *a, const struct pattern *pattern,
                         double scale)
{
    const long rounds = scaled(pattern->operations, scale);
    uint64_t *sizes = must_alloc((size_t)pattern->count, sizeof *sizes);
    uint64_t *ptrs = must_alloc((size_t)pattern->count, sizeof *ptrs);
    uint64_t state = 7;

    for (int i = 0; i < pattern->count; i++) {
        sizes[i] = random_size(&state, (double)pattern->low, (double)pattern->high);
    }
    climb_ladder(a, sizes, ptrs, pattern->count);
    climb_ladder(a, sizes, ptrs, pattern->count);
    const double begin = now_ns();

    for (long i = 0; i < rounds; i++) {
        climb_ladder(a, sizes, ptrs, pattern->count);
    }
    const double ns = (now_ns() - begin) / ((double)rounds * pattern->count);

    free(sizes);
    free(ptrs);
    return ns;
}

/* Replaces block after block. Backwards through the sizes the second time, so that it is not the
 * same program again. */
static void replace_blocks(const struct bench_allocator *a, uint64_t *ptrs, const int *slots,
                           const uint64_t *sizes, long operations, bool backwards)
{
    const uint64_t stream = a->streams[0];

    for (long i = 0; i < operations; i++) {
        uint64_t *ptr = &ptrs[slots[i]];

        a->free(a->context, *ptr, stream);
        *ptr = a->alloc(a->context, sizes[backwards ? operations - 1 - i : i], stream);
    }
}

static double run_churn(const struct bench_allocator *a, const struct pattern *pattern,
                        double scale)
{
    const long operations = scaled(pattern->operations, scale);
    uint64_t *ptrs = must_alloc((size_t)pattern->count, sizeof *ptrs);
    int *slots = must_alloc((size_t)operations, sizeof *slots);
    uint64_t *sizes = must_alloc((size_t)operations, sizeof *sizes);
    uint64_t state = 11;

    for (long i = 0; i < operations; i++) {
        slots[i] = (int)(random_next(&state) % (uint64_t)pattern->count);
        sizes[i] = random_size(&state, (double)pattern->low, (double)pattern->high);
    }
    for (int i = 0; i < pattern->count; i++) {
        ptrs[i] =
            a->alloc(a->context, random_size(&state, (double)pattern->low, (double)pattern->high),
                     a->streams[0]);
    }
    replace_blocks(a, ptrs, slots, sizes, operations, false);
    const double begin = now_ns();

    replace_blocks(a, ptrs, slots, sizes, operations, true);
    const double ns = (now_ns() - begin) / (double)operations;

    for (int i = 0; i < pattern->count; i++) {
        a->free(a->context, ptrs[i], a->streams[0]);
    }
    free(ptrs);
    free(slots);
    free(sizes);
    return ns;
}

/* ---- threads ---- */

struct gate {
    atomic_int ready;
    atomic_bool open;
};

struct worker {
    pthread_t thread;
    const struct bench_allocator *allocator;
    struct gate *gate;
    uint64_t stream;
    long rounds;
    double ns;
};

enum {
    WORKER_SIZES = 4
};

static void worker_round(const struct worker *worker)
{
    static const uint64_t sizes[WORKER_SIZES] = {512, 4096, 65536, 524288};
    const struct bench_allocator *a = worker->allocator;
    uint64_t ptrs[WORKER_SIZES];

    for (int i = 0; i < WORKER_SIZES; i++) {
        ptrs[i] = a->alloc(a->context, sizes[i], worker->stream);
    }
    for (int i = WORKER_SIZES; i > 0; i--) {
        a->free(a->context, ptrs[i - 1], worker->stream);
    }
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;

    if (worker->allocator->thread_begin) {
        worker->allocator->thread_begin(worker->allocator->context);
    }
    worker_round(worker);
    atomic_fetch_add(&worker->gate->ready, 1);
    while (!atomic_load(&worker->gate->open)) {
        (void)sched_yield();
    }
    const double begin = now_ns();

    for (long i = 0; i < worker->rounds; i++) {
        worker_round(worker);
    }
    worker->ns = now_ns() - begin;
    return NULL;
}

static double run_threads(const struct bench_allocator *a, const struct pattern *pattern,
                          double scale)
{
    struct worker workers[BENCH_THREADS_MAX];
    struct gate gate = {.ready = 0};
    const long rounds = scaled(pattern->operations, scale);
    double slowest = 0;

    for (int i = 0; i < pattern->count; i++) {
        workers[i] = (struct worker){
            .allocator = a,
            .gate = &gate,
            .stream = a->streams[pattern->own_stream ? i : 0],
            .rounds = rounds,
        };
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0) {
            (void)fprintf(stderr, "bench: cannot start a thread\n");
            exit(1);
        }
    }
    while (atomic_load(&gate.ready) < pattern->count) {
        (void)sched_yield();
    }
    atomic_store(&gate.open, true);
    for (int i = 0; i < pattern->count; i++) {
        (void)pthread_join(workers[i].thread, NULL);
        slowest = workers[i].ns > slowest ? workers[i].ns : slowest;
    }
    return slowest / ((double)rounds * WORKER_SIZES * pattern->count);
}

/* ---- running ---- */

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static const struct pattern patterns[] = {
    {"hot_512B", run_hot, 512, 0, 0, 200000, false},
    {"hot_4KiB", run_hot, 4 * KIB, 0, 0, 200000, false},
    {"hot_1MiB", run_hot, MIB, 0, 0, 200000, false},
    {"hot_2MiB", run_hot, 2 * MIB, 0, 0, 200000, false},
    {"hot_20MiB", run_hot, 20 * MIB, 0, 0, 200000, false},
    {"hot_256MiB", run_hot, 256 * MIB, 0, 0, 200000, false},
    {"ladder_small_256", run_ladder, 512, MIB, 256, 500, false},
    {"ladder_mixed_256", run_ladder, 512, 64 * MIB, 256, 500, false},
    {"churn_small_4096", run_churn, 512, MIB, 4096, 200000, false},
    {"churn_mixed_1024", run_churn, 512, 64 * MIB, 1024, 100000, false},
    {"churn_small_65536", run_churn, 512, MIB, 65536, 400000, false},
    {"threads_own_stream_1", run_threads, 0, 0, 1, 20000, true},
    {"threads_one_stream_1", run_threads, 0, 0, 1, 20000, false},
    {"threads_own_stream_2", run_threads, 0, 0, 2, 20000, true},
    {"threads_one_stream_2", run_threads, 0, 0, 2, 20000, false},
    {"threads_own_stream_4", run_threads, 0, 0, 4, 20000, true},
    {"threads_one_stream_4", run_threads, 0, 0, 4, 20000, false},
    {"threads_own_stream_8", run_threads, 0, 0, 8, 20000, true},
    {"threads_one_stream_8", run_threads, 0, 0, 8, 20000, false},
    {"threads_own_stream_16", run_threads, 0, 0, 16, 20000, true},
    {"threads_one_stream_16", run_threads, 0, 0, 16, 20000, false},
};

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;

    return (x > y) - (x < y);
}

void bench_run(const struct bench_allocator *allocator, double scale,
               void (*report)(void *context, const char *allocator, const char *pattern,
                              const struct bench_figure *figure),
               void *report_context)
{
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        double ns[BENCH_REPEATS];

        for (int k = 0; k < BENCH_REPEATS; k++) {
            ns[k] = patterns[i].run(allocator, &patterns[i], scale);
        }
        qsort(ns, BENCH_REPEATS, sizeof ns[0], compare_doubles);
        const struct bench_figure figure = {
            .median = ns[BENCH_REPEATS / 2], .fastest = ns[0], .slowest = ns[BENCH_REPEATS - 1]};

        report(report_context, allocator->name, patterns[i].name, &figure);
    }
}
