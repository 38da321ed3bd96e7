/* SPDX-License-Identifier: MIT */
#include "patterns.h"

#include "draw.h"
#include "figure.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- patterns ---- */

struct pattern {
    const char *name;
    double (*run)(const struct bench_allocator *a, const struct pattern *pattern, double scale);
    uint64_t low; /* sizes in bytes; of `hot` the one size */
    uint64_t high;
    int count; /* ladder: rungs; churn: live blocks; threads: threads; sizes: threads before */
    long operations;
    uint64_t seed;
    bool own_stream;
    enum bench_situation situation; /* with `count` */
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
    const double begin = bench_now_ns();

    for (long i = 0; i < operations; i++) {
        a->free(a->context, a->alloc(a->context, pattern->low, stream), stream);
    }
    return (bench_now_ns() - begin) / (double)operations;
}

static double run_situation(const struct bench_allocator *a, const struct pattern *pattern,
                            double scale)
{
    a->enter(a->context, pattern->situation, pattern->count);
    const double ns = run_hot(a, pattern, scale);

    a->leave(a->context, pattern->situation, pattern->count);
    return ns;
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
    uint64_t *sizes = bench_must_alloc((size_t)pattern->count, sizeof *sizes);
    uint64_t *ptrs = bench_must_alloc((size_t)pattern->count, sizeof *ptrs);
    struct bench_draw draw;

    bench_draw_init(&draw, pattern->seed);
    for (int i = 0; i < pattern->count; i++) {
        sizes[i] = bench_draw_size(&draw, (double)pattern->low, (double)pattern->high);
    }
    climb_ladder(a, sizes, ptrs, pattern->count);
    climb_ladder(a, sizes, ptrs, pattern->count);
    const double begin = bench_now_ns();

    for (long i = 0; i < rounds; i++) {
        climb_ladder(a, sizes, ptrs, pattern->count);
    }
    const double ns = (bench_now_ns() - begin) / ((double)rounds * pattern->count);

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
    uint64_t *ptrs = bench_must_alloc((size_t)pattern->count, sizeof *ptrs);
    int *slots = bench_must_alloc((size_t)operations, sizeof *slots);
    uint64_t *sizes = bench_must_alloc((size_t)operations, sizeof *sizes);
    struct bench_draw draw;

    bench_draw_init(&draw, pattern->seed);
    for (long i = 0; i < operations; i++) {
        slots[i] = (int)(bench_draw_next(&draw) % (uint64_t)pattern->count);
        sizes[i] = bench_draw_size(&draw, (double)pattern->low, (double)pattern->high);
    }
    for (int i = 0; i < pattern->count; i++) {
        ptrs[i] = a->alloc(a->context,
                           bench_draw_size(&draw, (double)pattern->low, (double)pattern->high),
                           a->streams[0]);
    }
    replace_blocks(a, ptrs, slots, sizes, operations, false);
    const double begin = bench_now_ns();

    replace_blocks(a, ptrs, slots, sizes, operations, true);
    const double ns = (bench_now_ns() - begin) / (double)operations;

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
    const struct pattern *pattern;
    struct gate *gate;
    int number;
    long rounds;
    double begin;
    double end;
};

enum {
    WORKER_SIZES = 4,
    WORKER_BLOCKS = 1024 /* live, of one that replaces at random */
};

static uint64_t worker_stream(const struct worker *worker)
{
    return worker->allocator->streams[worker->pattern->own_stream ? worker->number : 0];
}

static void gate_pass(struct worker *worker)
{
    atomic_fetch_add(&worker->gate->ready, 1);
    while (!atomic_load(&worker->gate->open)) {
        (void)sched_yield();
    }
    worker->begin = bench_now_ns();
}

static void worker_round(const struct worker *worker)
{
    static const uint64_t sizes[WORKER_SIZES] = {512, 4096, 65536, 524288};
    const struct bench_allocator *a = worker->allocator;
    const uint64_t stream = worker_stream(worker);
    uint64_t ptrs[WORKER_SIZES];

    for (int i = 0; i < WORKER_SIZES; i++) {
        ptrs[i] = a->alloc(a->context, sizes[i], stream);
    }
    for (int i = WORKER_SIZES; i > 0; i--) {
        a->free(a->context, ptrs[i - 1], stream);
    }
}

static void work_in_reverse_order(struct worker *worker)
{
    worker_round(worker);
    gate_pass(worker);
    for (long i = 0; i < worker->rounds; i++) {
        worker_round(worker);
    }
    worker->end = bench_now_ns();
}

static void worker_replace(const struct bench_allocator *a, uint64_t *ptr, uint64_t size,
                           uint64_t stream)
{
    a->free(a->context, *ptr, stream);
    *ptr = a->alloc(a->context, size, stream);
}

static void work_at_random(struct worker *worker)
{
    const struct bench_allocator *a = worker->allocator;
    const struct pattern *pattern = worker->pattern;
    const uint64_t stream = worker_stream(worker);
    const long operations = worker->rounds * WORKER_SIZES;
    uint64_t *sizes = bench_must_alloc((size_t)operations, sizeof *sizes);
    uint64_t ptrs[WORKER_BLOCKS];
    struct bench_draw draw;

    bench_draw_init(&draw, pattern->seed + (uint64_t)worker->number);
    for (long i = 0; i < operations; i++) {
        sizes[i] = bench_draw_size(&draw, (double)pattern->low, (double)pattern->high);
    }
    for (int i = 0; i < WORKER_BLOCKS; i++) {
        ptrs[i] = a->alloc(a->context, sizes[i % operations], stream);
    }
    for (long i = 0; i < 4L * WORKER_BLOCKS; i++) {
        worker_replace(a, &ptrs[bench_draw_next(&draw) % WORKER_BLOCKS],
                       sizes[operations - 1 - i % operations], stream);
    }
    gate_pass(worker);
    for (long i = 0; i < operations; i++) {
        worker_replace(a, &ptrs[bench_draw_next(&draw) % WORKER_BLOCKS], sizes[i], stream);
    }
    worker->end = bench_now_ns();
    for (int i = 0; i < WORKER_BLOCKS; i++) {
        a->free(a->context, ptrs[i], stream);
    }
    free(sizes);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;

    if (worker->allocator->thread_begin) {
        worker->allocator->thread_begin(worker->allocator->context);
    }
    if (worker->pattern->high > 0) {
        work_at_random(worker);
    } else {
        work_in_reverse_order(worker);
    }
    return NULL;
}

static double run_threads(const struct bench_allocator *a, const struct pattern *pattern,
                          double scale)
{
    struct worker workers[BENCH_THREADS_MAX] = {{.rounds = 0}};
    struct gate gate = {.ready = 0};
    const long rounds = scaled(pattern->operations, scale);

    for (int i = 0; i < pattern->count; i++) {
        workers[i] = (struct worker){
            .allocator = a,
            .pattern = pattern,
            .gate = &gate,
            .number = i,
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
    }
    double begin = workers[0].begin;
    double end = workers[0].end;

    for (int i = 1; i < pattern->count; i++) {
        begin = workers[i].begin < begin ? workers[i].begin : begin;
        end = workers[i].end > end ? workers[i].end : end;
    }
    return (end - begin) / ((double)rounds * WORKER_SIZES * pattern->count);
}

/* Sizes in turn, doubled from the lowest to the highest, each freed at once; if `count` is given,
 * after as many threads have worked on streams of their own, as a main thread goes on when its
 * helpers are done. */
static double run_sizes(const struct bench_allocator *a, const struct pattern *pattern,
                        double scale)
{
    const struct pattern before = {
        .count = pattern->count, .operations = 20000, .own_stream = true};
    const long operations = scaled(pattern->operations, scale);
    const uint64_t stream = a->streams[0];
    uint64_t size = pattern->low;

    if (pattern->count > 0) {
        (void)run_threads(a, &before, scale);
    }
    const double begin = bench_now_ns();

    for (long i = 0; i < operations; i++) {
        a->free(a->context, a->alloc(a->context, size, stream), stream);
        size = size < pattern->high ? 2 * size : pattern->low;
    }
    return (bench_now_ns() - begin) / (double)operations;
}

/* ---- running ---- */

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static const struct pattern patterns[] = {
    {"hot_512B", run_hot, 512, 0, 0, 200000, 0, false, BENCH_ORDINARY},
    {"hot_4KiB", run_hot, 4 * KIB, 0, 0, 200000, 0, false, BENCH_ORDINARY},
    {"hot_1MiB", run_hot, MIB, 0, 0, 200000, 0, false, BENCH_ORDINARY},
    {"hot_2MiB", run_hot, 2 * MIB, 0, 0, 200000, 0, false, BENCH_ORDINARY},
    {"hot_20MiB", run_hot, 20 * MIB, 0, 0, 200000, 0, false, BENCH_ORDINARY},
    {"hot_256MiB", run_hot, 256 * MIB, 0, 0, 200000, 0, false, BENCH_ORDINARY},
    {"sizes", run_sizes, 512, 8 * MIB, 0, 200000, 0, false, BENCH_ORDINARY},
    {"sizes_after_threads_8", run_sizes, 512, 8 * MIB, 8, 200000, 0, true, BENCH_ORDINARY},
    {"ladder_small_256", run_ladder, 512, MIB, 256, 500, 7, false, BENCH_ORDINARY},
    {"ladder_mixed_256", run_ladder, 512, 64 * MIB, 256, 500, 7, false, BENCH_ORDINARY},
    {"churn_small_4096", run_churn, 512, MIB, 4096, 200000, 11, false, BENCH_ORDINARY},
    {"churn_mixed_1024", run_churn, 512, 64 * MIB, 1024, 100000, 13, false, BENCH_ORDINARY},
    {"churn_small_65536", run_churn, 512, MIB, 65536, 400000, 17, false, BENCH_ORDINARY},
    {"hot_while_1_waits", run_situation, 4 * KIB, 0, 1, 200000, 0, false, BENCH_PENDING},
    {"hot_while_8_wait", run_situation, 4 * KIB, 0, 8, 200000, 0, false, BENCH_PENDING},
    {"hot_while_routed", run_situation, 4 * KIB, 0, 0, 200000, 0, false, BENCH_ROUTED},
    {"threads_own_stream_1", run_threads, 0, 0, 1, 20000, 0, true, BENCH_ORDINARY},
    {"threads_one_stream_1", run_threads, 0, 0, 1, 20000, 0, false, BENCH_ORDINARY},
    {"threads_own_stream_2", run_threads, 0, 0, 2, 20000, 0, true, BENCH_ORDINARY},
    {"threads_one_stream_2", run_threads, 0, 0, 2, 20000, 0, false, BENCH_ORDINARY},
    {"threads_own_stream_4", run_threads, 0, 0, 4, 20000, 0, true, BENCH_ORDINARY},
    {"threads_one_stream_4", run_threads, 0, 0, 4, 20000, 0, false, BENCH_ORDINARY},
    {"threads_own_stream_8", run_threads, 0, 0, 8, 20000, 0, true, BENCH_ORDINARY},
    {"threads_one_stream_8", run_threads, 0, 0, 8, 20000, 0, false, BENCH_ORDINARY},
    {"threads_own_stream_16", run_threads, 0, 0, 16, 20000, 0, true, BENCH_ORDINARY},
    {"threads_one_stream_16", run_threads, 0, 0, 16, 20000, 0, false, BENCH_ORDINARY},
    {"threads_churn_1", run_threads, 512, MIB, 1, 10000, 19, true, BENCH_ORDINARY},
    {"threads_churn_2", run_threads, 512, MIB, 2, 10000, 19, true, BENCH_ORDINARY},
    {"threads_churn_4", run_threads, 512, MIB, 4, 10000, 19, true, BENCH_ORDINARY},
    {"threads_churn_8", run_threads, 512, MIB, 8, 10000, 19, true, BENCH_ORDINARY},
    {"threads_churn_16", run_threads, 512, MIB, 16, 10000, 19, true, BENCH_ORDINARY},
};

size_t bench_pattern_count(void)
{
    return sizeof patterns / sizeof patterns[0];
}

const char *bench_pattern_name(size_t pattern)
{
    return patterns[pattern].name;
}

bool bench_pattern_is_steady(size_t pattern)
{
    return patterns[pattern].run != run_churn;
}

bool bench_pattern_has_situation(size_t pattern)
{
    return patterns[pattern].situation != BENCH_ORDINARY;
}

double bench_pattern_run(size_t pattern, const struct bench_allocator *allocator, double scale)
{
    return patterns[pattern].run(allocator, &patterns[pattern], scale);
}
