/* SPDX-License-Identifier: MIT */
/*
 * scale [--origin TEXT] [--largest BLOCKS] [--only NAME]: what an operation costs and how much host
 * memory a block takes with few and with many live blocks (up to 10 million, up to a million in
 * growing segments and with pages that move), and with many streams, on the simulated device; with
 * --only for one of the allocators. One line of CSV each on standard output (figure.h):
 *
 *   scale_live_N                  ns per replacement of a random one of N live blocks
 *   scale_live_N_bytes_per_block  host memory by live block
 *   scale_live_N_bytes_freed      host memory kept when all blocks were freed
 *   scale_live_N_bytes_emptied    ... and the cache was given back to the device
 *   scale_large_N                 ns per replacement of a random one of N blocks of 1 to 8 MiB
 *   scale_streams_N               the same with N streams in turn, each with its own blocks
 *   scale_large_streams_N         likewise with blocks of 1 to 8 MiB
 *   scale_streams_N_bytes_...     per stream with one block; per block with all
 *
 * Host memory is all that libtarn holds beyond what an allocator without blocks has, the records of
 * the simulated device included. Memory of this program (pointers, sizes) does not count, and the
 * pointer to be freed is fetched ahead: a program that frees a block has its pointer at hand.
 */
#include "draw.h"
#include "figure.h"
#include "patterns.h"
#include "tarn_adapter.h"

#include "tarn/host.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    OPERATIONS = 200000, /* timed at once */
    LARGE_OPERATIONS = 4000,
    LARGE_BLOCKS = 10000, /* at most */
    AHEAD = 8,            /* of which the pointer is fetched */
    STREAMS = 1000,
    BLOCKS_OF_STREAM = 100,
    LARGE_OF_STREAM = 5
};

/* Replacements drawn beforehand. */
struct plan {
    uint32_t slots[OPERATIONS + AHEAD];
    uint32_t sizes[OPERATIONS];
};

/* What is measured: sizes in bytes, and replacements timed at once. */
struct load {
    uint64_t low;
    uint64_t high;
    uint64_t operations;
};

static const struct load small_blocks = {512, 4096, OPERATIONS};
static const struct load large_blocks = {1 << 20, 8 << 20, LARGE_OPERATIONS};

struct scene {
    struct bench_tarn tarn;
    struct bench_draw draw;
    struct load load;
    struct plan *plan;
    uint64_t *ptrs; /* live blocks */
    uint64_t live;
    uint64_t streams; /* block i belongs to stream i % streams */
    uint64_t rows;    /* blocks of each stream */
    uint64_t bytes_before;
};

static const char *origin;

static void report(const struct scene *scene, const char *pattern, const char *unit,
                   const struct bench_figure *figure)
{
    bench_figure_print(stdout, origin, scene->tarn.measured.name, pattern, unit, figure);
}

/* `what` is appended to the name of the scene. */
static void report_bytes(const struct scene *scene, const char *name, const char *what,
                         double bytes)
{
    const struct bench_figure figure = bench_figure_once(bytes);
    char pattern[80];

    (void)snprintf(pattern, sizeof pattern, "%s_bytes_%s", name, what);
    report(scene, pattern, "bytes", &figure);
}

static double bytes_of(const struct scene *scene)
{
    return (double)tarn_host_get_usage().live_bytes - (double)scene->bytes_before;
}

static void scene_begin(struct scene *scene, const char *allocator, const struct load *load,
                        uint64_t rows, uint64_t streams)
{
    const uint64_t live = rows * streams;

    bench_tarn_open_named(&scene->tarn, allocator);
    scene->load = *load;
    bench_draw_init(&scene->draw, 19);
    scene->plan = bench_must_alloc(1, sizeof *scene->plan);
    scene->ptrs = bench_must_alloc(live, sizeof *scene->ptrs);
    scene->live = live;
    scene->streams = streams;
    scene->rows = rows;
    scene->bytes_before = tarn_host_get_usage().live_bytes;
}

static uint64_t scene_alloc(struct scene *scene, uint64_t slot, uint64_t size)
{
    const struct bench_allocator *a = &scene->tarn.measured;

    return a->alloc(a->context, size, 0x1000 + slot % scene->streams * 64);
}

static uint64_t draw_size(struct scene *scene)
{
    return bench_draw_size(&scene->draw, (double)scene->load.low, (double)scene->load.high);
}

static void scene_fill(struct scene *scene, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++) {
        scene->ptrs[i] = scene_alloc(scene, i, draw_size(scene));
    }
}

/* Random blocks; with several streams, of one stream after the other. */
static void plan_draw(struct scene *scene)
{
    for (uint64_t i = 0; i < scene->load.operations + AHEAD; i++) {
        const uint64_t row = bench_draw_next(&scene->draw) % scene->rows;

        scene->plan->slots[i] = (uint32_t)(row * scene->streams + i % scene->streams);
    }
    for (uint64_t i = 0; i < scene->load.operations; i++) {
        scene->plan->sizes[i] = (uint32_t)draw_size(scene);
    }
}

/* Nanoseconds per replacement. */
static double scene_replace(struct scene *scene)
{
    const struct bench_allocator *a = &scene->tarn.measured;

    plan_draw(scene);
    const struct plan *plan = scene->plan;
    const uint64_t operations = scene->load.operations;
    const double begin = bench_now_ns();

    for (uint64_t i = 0; i < operations; i++) {
        __builtin_prefetch(&scene->ptrs[plan->slots[i + AHEAD]], 1);
        uint64_t *ptr = &scene->ptrs[plan->slots[i]];

        a->free(a->context, *ptr, 0);
        *ptr = scene_alloc(scene, plan->slots[i], plan->sizes[i]);
    }
    return (bench_now_ns() - begin) / (double)operations;
}

/* Every block was replaced once on average before the clock starts. */
static void scene_measure(struct scene *scene, const char *name)
{
    double ns[BENCH_REPEATS];

    for (uint64_t done = 0; done < scene->live; done += scene->load.operations) {
        (void)scene_replace(scene);
    }
    for (size_t i = 0; i < BENCH_REPEATS; i++) {
        ns[i] = scene_replace(scene);
    }
    const struct bench_figure figure = bench_figure_of(ns, BENCH_REPEATS);

    report(scene, name, "ns", &figure);
}

static void scene_end(struct scene *scene, const char *name)
{
    const struct bench_allocator *a = &scene->tarn.measured;
    struct tarn_error error;

    report_bytes(scene, name, "per_block", bytes_of(scene) / (double)scene->live);
    for (uint64_t i = 0; i < scene->live; i++) {
        a->free(a->context, scene->ptrs[i], 0);
    }
    report_bytes(scene, name, "freed", bytes_of(scene));
    if (tarn_allocator_empty_cache(scene->tarn.allocator, &error)) {
        (void)fprintf(stderr, "scale: %s\n", error.text);
        exit(1);
    }
    report_bytes(scene, name, "emptied", bytes_of(scene));
    free(scene->ptrs);
    free(scene->plan);
    bench_tarn_close(&scene->tarn);
}

static void run_live(const char *allocator, const struct load *load, uint64_t live)
{
    struct scene scene;
    char name[40];

    (void)snprintf(name, sizeof name, "scale_%s_%" PRIu64, load == &large_blocks ? "large" : "live",
                   live);
    scene_begin(&scene, allocator, load, live, 1);
    scene_fill(&scene, 0, live);
    scene_measure(&scene, name);
    scene_end(&scene, name);
}

static void run_streams(const char *allocator, const struct load *load, uint64_t blocks)
{
    struct scene scene;
    char name[40];

    (void)snprintf(name, sizeof name, "scale_%sstreams_%d", load == &large_blocks ? "large_" : "",
                   STREAMS);
    scene_begin(&scene, allocator, load, blocks, STREAMS);
    scene_fill(&scene, 0, STREAMS);
    report_bytes(&scene, name, "per_stream", bytes_of(&scene) / STREAMS);
    scene_fill(&scene, STREAMS, scene.live);
    scene_measure(&scene, name);
    scene_end(&scene, name);
}

/* Bytes that programs may still take on this machine; 0 if it does not say. */
static uint64_t memory_available(void)
{
    char line[256];
    uint64_t kib = 0;
    FILE *file = fopen("/proc/meminfo", "r");

    while (file && fgets(line, sizeof line, file)) {
        if (strncmp(line, "MemAvailable:", 13) == 0) {
            kib = strtoull(line + 13, NULL, 10);
            break;
        }
    }
    if (file) {
        (void)fclose(file);
    }
    return kib << 10;
}

/* Up to so many small blocks. */
static void run_allocator(const char *allocator, uint64_t largest)
{
    enum {
        BYTES_A_BLOCK = 256 /* at least what one takes here, with room for tables that grow */
    };

    for (uint64_t live = 1000; live <= largest; live *= 10) {
        if (live * BYTES_A_BLOCK > memory_available()) {
            (void)fprintf(stderr,
                          "scale: %" PRIu64 " live blocks are left out: they may take %" PRIu64
                          " MiB of host memory, there are %" PRIu64 " MiB\n",
                          live, live * BYTES_A_BLOCK >> 20, memory_available() >> 20);
            break;
        }
        run_live(allocator, &small_blocks, live);
    }
    for (uint64_t live = 100; live <= LARGE_BLOCKS; live *= 10) {
        run_live(allocator, &large_blocks, live);
    }
    run_streams(allocator, &small_blocks, BLOCKS_OF_STREAM);
    run_streams(allocator, &large_blocks, LARGE_OF_STREAM);
}

int main(int argc, char **argv)
{
    static const char *const allocators[] = {"tarn", "tarn-expandable", "tarn-compact"};
    uint64_t largest = 10000000;
    const char *only = NULL;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--origin") == 0) {
            origin = argv[i + 1];
        } else if (strcmp(argv[i], "--largest") == 0) {
            largest = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0) {
            only = argv[i + 1];
        }
    }
    for (size_t i = 0; i < sizeof allocators / sizeof allocators[0]; i++) {
        const uint64_t most = i > 0 && largest > 1000000 ? 1000000 : largest;

        if (!only || strcmp(only, allocators[i]) == 0) {
            run_allocator(allocators[i], most);
        }
    }
    return 0;
}
