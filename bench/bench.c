/* SPDX-License-Identifier: MIT */
/*
 * bench [--scale X] [SNAPSHOT...]: the patterns of patterns.h on the simulated device, and the
 * replay of recorded snapshots, as CSV on standard output: machine, commit, allocator, pattern,
 * median, fastest, slowest, all in nanoseconds per allocation and free.
 */
#include "patterns.h"

#include "tarn/allocator.h"
#include "tarn/replay.h"
#include "tarn/sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef BENCH_COMMIT
#define BENCH_COMMIT "unknown"
#endif

static void fail(const char *what, const struct tarn_error *error)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, error->text);
    exit(1);
}

static uint64_t bench_alloc(void *context, uint64_t size, uint64_t stream)
{
    tarn_ptr ptr = 0;

    if (tarn_allocator_alloc(context, size, stream, &ptr, NULL)) {
        (void)fprintf(stderr, "bench: out of simulated memory\n");
        exit(1);
    }
    return ptr;
}

static void bench_free(void *context, uint64_t ptr, uint64_t stream)
{
    (void)stream;
    if (tarn_allocator_free(context, ptr, NULL)) {
        (void)fprintf(stderr, "bench: a pointer was lost\n");
        exit(1);
    }
}

/* Name of the processor, without commas. */
static const char *machine_name(void)
{
    static char name[128] = "unknown";
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            (void)snprintf(name, sizeof name, "%s", strchr(line, ':') + 2);
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    for (char *c = name; *c; c++) {
        if (*c == ',' || *c == '\n') {
            *c = ' ';
        }
    }
    return name;
}

static void report(void *context, const char *allocator, const char *pattern,
                   const struct bench_figure *figure)
{
    (void)context;
    (void)printf("%s,%s,%s,%s,%.1f,%.1f,%.1f\n", machine_name(), BENCH_COMMIT, allocator, pattern,
                 figure->median, figure->fastest, figure->slowest);
    (void)fflush(stdout);
}

static void run_patterns(const char *name, const char *conf, double scale)
{
    const struct tarn_sim_options options = {.struct_size = sizeof options,
                                             .capacity = (uint64_t)1 << 40};
    uint64_t streams[BENCH_THREADS_MAX];
    struct tarn_config config;
    struct tarn_device *device = NULL;
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;

    for (uint64_t i = 0; i < BENCH_THREADS_MAX; i++) {
        streams[i] = 0x1000 + i * 64;
    }
    if (tarn_config_parse(conf, &config, &error) || tarn_sim_open(&options, &device, &error) ||
        tarn_allocator_create(device, &config, &allocator, &error)) {
        fail(name, &error);
    }
    const struct bench_allocator measured = {
        .name = name,
        .context = allocator,
        .alloc = bench_alloc,
        .free = bench_free,
        .streams = streams,
    };

    bench_run(&measured, scale, report, NULL);
    tarn_allocator_destroy(allocator);
    tarn_device_close(device);
}

static int compare_u64(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Nanoseconds per operation of the trace, under two settings. */
static void run_replay(const char *path, const char *name, const char *conf)
{
    struct tarn_replay_options options = {.struct_size = sizeof options, .conf = conf};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_error error;
    uint64_t ns[BENCH_REPEATS];
    char pattern[160];

    if (tarn_snapshot_load(path, NULL, &snapshot, &error) ||
        tarn_replay_create(snapshot, -1, &replay, &error)) {
        fail(path, &error);
    }
    for (int i = 0; i < BENCH_REPEATS; i++) {
        if (tarn_replay_run(replay, &options, &result, &error)) {
            fail(path, &error);
        }
        ns[i] = result.wall_ns;
    }
    qsort(ns, BENCH_REPEATS, sizeof ns[0], compare_u64);
    const double operations = (double)result.operations;
    const size_t middle = BENCH_REPEATS / 2;
    const struct bench_figure figure = {.median = (double)ns[middle] / operations,
                                        .fastest = (double)ns[0] / operations,
                                        .slowest = (double)ns[BENCH_REPEATS - 1] / operations};
    const char *base = strrchr(path, '/');

    (void)snprintf(pattern, sizeof pattern, "replay_%s", base ? base + 1 : path);
    pattern[strcspn(pattern, ".")] = '\0';
    report(NULL, name, pattern, &figure);
    tarn_replay_destroy(replay);
    tarn_snapshot_destroy(snapshot);
}

int main(int argc, char **argv)
{
    double scale = 1.0;
    int first = 1;

    if (argc > 2 && strcmp(argv[1], "--scale") == 0) {
        scale = strtod(argv[2], NULL);
        first = 3;
    }
    (void)printf("machine,commit,allocator,pattern,median_ns,fastest_ns,slowest_ns\n");
    run_patterns("tarn", "", scale);
    run_patterns("tarn-expandable", "expandable_segments:True", scale);
    for (int i = first; i < argc; i++) {
        run_replay(argv[i], "tarn", "");
        run_replay(argv[i], "tarn-expandable", "expandable_segments:True");
    }
    return 0;
}
