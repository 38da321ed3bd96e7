/* SPDX-License-Identifier: MIT */
/*
 * soak [--conf SETTINGS] [--steps N] [--blocks N]: a training run's worth of events on a simulated
 * device with a virtual clock, ten steps a second: activations that are freed in reverse, blocks
 * that a side stream uses late, a pool of its own, graphs that are captured and dropped, requests
 * that fail, streams that come and go, an event history that wraps around. By default a day, in 24
 * blocks of the same steps. After each block what is reserved, the device's objects and the memory
 * of the host must be what they were after the second one, or after the one that filled the list of
 * pools that are gone. Exit status 1 where something has grown.
 */
#include "tarn/allocator.h"
#include "tarn/findings.h"
#include "tarn/history.h"
#include "tarn/sim.h"
#include "tarn/stream.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

enum {
    STEP_NS = 100000000, /* a tenth of a second */
    LATE_NS = 30000000,  /* that the side stream takes for a step */
    LAYERS = 48,
    LATE = 10,
    POOLED = 12,
    GRAPHS = 6,
    OUTPUTS = 5,
    SHAPES = 90,
    CAPTURE_EVERY = 45,
    FAIL_EVERY = 135,
    HEAP_SLACK = 64 << 10 /* bytes of the host that may come and go */
};

struct graph {
    struct tarn_pool_id pool; /* {0, 0}: none yet */
    tarn_ptr outputs[OUTPUTS];
};

struct soak {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_history *history;
    tarn_stream main_stream;
    tarn_stream side_stream;
    tarn_ptr weights[LAYERS];
    struct graph graphs[GRAPHS];
    uint64_t captures;
    uint64_t events; /* allocations, frees and failures so far */
};

/* What must not grow. */
struct footprint {
    uint64_t reserved;
    uint64_t reserved_peak;
    uint64_t allocated;
    uint64_t active;
    uint64_t device_bytes;
    uint64_t
        objects;   /* of the device: allocations, pages, mappings, reservations, events, streams */
    uint64_t heap; /* bytes of the host */
};

static void must(enum tarn_status status, const struct tarn_error *error, const char *what)
{
    if (status != TARN_OK) {
        (void)fprintf(stderr, "soak: %s: %s\n", what, error->text);
        exit(2);
    }
}

static tarn_ptr allocate(struct soak *soak, uint64_t size, tarn_stream stream)
{
    struct tarn_error error = {0};
    tarn_ptr ptr = 0;

    must(tarn_allocator_alloc(soak->allocator, size, stream, &ptr, &error), &error, "allocating");
    soak->events++;
    return ptr;
}

static void give_back(struct soak *soak, tarn_ptr ptr)
{
    struct tarn_error error = {0};

    must(tarn_allocator_free(soak->allocator, ptr, &error), &error, "freeing");
    soak->events++;
}

/* ---- parts of a step ---- */

/* Forward and backward: temporary memory in each layer, activations freed in reverse. */
static void train(struct soak *soak, uint64_t shape)
{
    tarn_ptr kept[LAYERS][3];

    for (uint64_t i = 0; i < LAYERS; i++) {
        kept[i][0] = allocate(soak, (64 + shape * 4) * 8 * KIB, soak->main_stream);
        kept[i][1] = allocate(soak, 512 + shape * 16, soak->main_stream);
        give_back(soak, allocate(soak, (16 + i) * 24 * KIB, soak->main_stream));
        kept[i][2] = allocate(soak, (1 + shape % 7) * MIB, soak->main_stream);
    }
    for (uint64_t i = LAYERS; i-- > 0;) {
        give_back(soak, kept[i][2]);
        give_back(soak, allocate(soak, (3 + i % 5) * 512 * KIB, soak->main_stream));
        give_back(soak, kept[i][1]);
        give_back(soak, kept[i][0]);
    }
}

/* Freed while the side stream still uses them. */
static void use_late(struct soak *soak, uint64_t shape)
{
    struct tarn_error error = {0};
    tarn_ptr blocks[LATE];

    for (uint64_t i = 0; i < LATE; i++) {
        blocks[i] = allocate(soak, (1 + (shape + i) % 9) * 384 * KIB, soak->main_stream);
        must(tarn_allocator_record_stream(soak->allocator, blocks[i], soak->side_stream, &error),
             &error, "recording a stream");
    }
    if (tarn_sim_enqueue_ns(soak->device, soak->side_stream, LATE_NS) != TARN_OK) {
        exit(2);
    }
    for (uint64_t i = 0; i < LATE; i++) {
        give_back(soak, blocks[i]);
    }
}

static bool is_stream(void *context, tarn_stream stream)
{
    return *(const tarn_stream *)context == stream;
}

/* Routes what `main_stream` asks for to the pool while `body` runs. */
static void within_pool(struct soak *soak, struct tarn_pool_id pool,
                        void (*body)(struct soak *, uint64_t, struct graph *), uint64_t shape,
                        struct graph *graph)
{
    struct tarn_error error = {0};

    must(tarn_allocator_begin_pool(soak->allocator, pool, is_stream, &soak->main_stream, &error),
         &error, "beginning a pool");
    body(soak, shape, graph);
    must(tarn_allocator_end_pool(soak->allocator, pool, &error), &error, "ending a pool");
}

static void pooled(struct soak *soak, uint64_t shape, struct graph *graph)
{
    tarn_ptr blocks[POOLED];

    (void)graph;
    for (uint64_t i = 0; i < POOLED; i++) {
        blocks[i] = allocate(soak, (1 + (shape * 5 + i) % 11) * 640 * KIB, soak->main_stream);
    }
    for (uint64_t i = 0; i < POOLED; i++) {
        give_back(soak, blocks[(i * 5) % POOLED]);
    }
}

static void captured(struct soak *soak, uint64_t shape, struct graph *graph)
{
    for (uint64_t i = 0; i < OUTPUTS; i++) {
        graph->outputs[i] = allocate(soak, (2 + shape % 5 + i) * 700 * KIB, soak->main_stream);
        give_back(soak, allocate(soak, (1 + i) * MIB, soak->main_stream));
    }
}

static void graph_drop(struct soak *soak, struct graph *graph)
{
    struct tarn_error error = {0};

    if (graph->pool.first == 0) {
        return;
    }
    for (uint64_t i = 0; i < OUTPUTS; i++) {
        give_back(soak, graph->outputs[i]);
    }
    must(tarn_allocator_release_pool(soak->allocator, graph->pool, &error), &error,
         "releasing a pool");
    graph->pool.first = 0;
}

/* A new graph, in a pool of its own, takes the place of the oldest one. */
static void capture(struct soak *soak, uint64_t shape)
{
    struct graph *graph = &soak->graphs[soak->captures % GRAPHS];

    graph_drop(soak, graph);
    graph->pool.first = ++soak->captures;
    if (tarn_sim_set_capturing(soak->device, soak->main_stream, true) != TARN_OK) {
        exit(2);
    }
    within_pool(soak, graph->pool, captured, shape, graph);
    if (tarn_sim_set_capturing(soak->device, soak->main_stream, false) != TARN_OK) {
        exit(2);
    }
}

/* More than there is. */
static void fail(struct soak *soak)
{
    struct tarn_error error = {0};
    tarn_ptr ptr;

    if (tarn_allocator_alloc(soak->allocator, 1000000 * MIB, soak->main_stream, &ptr, &error) !=
        TARN_ERR_OUT_OF_MEMORY) {
        (void)fprintf(stderr, "soak: a request of a terabyte did not fail\n");
        exit(1);
    }
    soak->events++;
}

static void step(struct soak *soak, uint64_t number)
{
    const uint64_t shape = number * 37 % SHAPES;
    const struct tarn_pool_id pool = {.second = 1};

    train(soak, shape);
    use_late(soak, shape);
    if (number % 10 == 0) {
        within_pool(soak, pool, pooled, shape, NULL);
    }
    if (number % CAPTURE_EVERY == 0) {
        capture(soak, shape);
    }
    if (number % FAIL_EVERY == FAIL_EVERY - 1) {
        fail(soak);
    }
    tarn_sim_advance_ns(soak->device, STEP_NS);
}

/* ---- the run ---- */

static void begin(struct soak *soak, const char *conf)
{
    const struct tarn_history_options options = {.struct_size = sizeof options,
                                                 .max_entries = 10000};
    struct tarn_error error = {0};
    struct tarn_sink sink;

    must(tarn_allocator_create_on("sim:80GiB", conf, &soak->allocator, &error), &error, conf);
    soak->device = tarn_allocator_get_device(soak->allocator);
    must(tarn_stream_create(soak->device, &soak->main_stream, &error), &error, "a stream");
    must(tarn_stream_create(soak->device, &soak->side_stream, &error), &error, "a stream");
    must(tarn_history_create(&options, &soak->history, &error), &error, "a history");
    tarn_history_get_sink(soak->history, TARN_CONTEXT_NEVER, &sink);

    const enum tarn_status status = tarn_allocator_add_sink(soak->allocator, &sink, &error);

    if (status != TARN_ERR_NOT_SUPPORTED) { /* the driver's pool has no events */
        must(status, &error, "adding the history");
    }
    for (uint64_t i = 0; i < LAYERS; i++) {
        soak->weights[i] = allocate(soak, (3 + i % 4) * 7 * MIB, soak->main_stream);
    }
}

/* The side stream goes and another comes. */
static void renew_stream(struct soak *soak)
{
    struct tarn_error error = {0};

    must(tarn_stream_wait(soak->device, soak->side_stream, &error), &error, "waiting");
    must(tarn_allocator_empty_cache(soak->allocator, &error), &error, "emptying the cache");
    must(tarn_stream_destroy(soak->device, soak->side_stream, &error), &error, "a stream's end");
    must(tarn_stream_create(soak->device, &soak->side_stream, &error), &error, "a stream");
}

static struct footprint measure(struct soak *soak)
{
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};
    struct tarn_stats stats = {.struct_size = sizeof stats};
    const struct mallinfo2 heap = mallinfo2();

    tarn_allocator_get_stats(soak->allocator, &stats);
    tarn_sim_get_counters(soak->device, &counters);

    const struct tarn_stat *reserved = &stats.by_pool[TARN_STAT_RESERVED_BYTES][TARN_STAT_ALL];

    return (struct footprint){
        .reserved = (uint64_t)reserved->current,
        .reserved_peak = (uint64_t)reserved->peak,
        .allocated = (uint64_t)stats.by_pool[TARN_STAT_ALLOCATED_BYTES][TARN_STAT_ALL].current,
        .active = (uint64_t)stats.by_pool[TARN_STAT_ACTIVE_BYTES][TARN_STAT_ALL].current,
        .device_bytes = counters.used_bytes,
        .objects = counters.live_allocations + counters.live_pages + counters.live_mappings +
                   counters.live_reservations + counters.live_events + counters.live_streams,
        .heap = heap.uordblks + heap.hblkhd,
    };
}

static bool has_grown(uint64_t block, const char *what, uint64_t now, uint64_t before)
{
    if (now > before) {
        (void)printf("block %" PRIu64 ": %s %" PRIu64 ", was %" PRIu64 "\n", block, what, now,
                     before);
    }
    return now > before;
}

static bool footprint_grew(uint64_t block, const struct footprint *now,
                           const struct footprint *before)
{
    bool grew = has_grown(block, "reserved", now->reserved, before->reserved);

    grew |= has_grown(block, "peak of reserved", now->reserved_peak, before->reserved_peak);
    grew |= has_grown(block, "allocated", now->allocated, before->allocated);
    grew |= has_grown(block, "active", now->active, before->active);
    grew |= has_grown(block, "bytes of the device", now->device_bytes, before->device_bytes);
    grew |= has_grown(block, "objects of the device", now->objects, before->objects);
    grew |= has_grown(block, "bytes of the host", now->heap, before->heap + HEAP_SLACK);
    return grew;
}

static struct footprint run_block(struct soak *soak, uint64_t steps)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    tarn_allocator_reset_peak_stats(soak->allocator);
    for (uint64_t i = 0; i < steps; i++) {
        step(soak, i);
    }
    renew_stream(soak);
    if (tarn_allocator_check(soak->allocator, &findings) > 0) {
        (void)printf("%s\n", findings.text[0]);
        exit(1);
    }
    return measure(soak);
}

static void end(struct soak *soak)
{
    for (uint64_t i = 0; i < GRAPHS; i++) {
        graph_drop(soak, &soak->graphs[i]);
    }
    for (uint64_t i = 0; i < LAYERS; i++) {
        give_back(soak, soak->weights[i]);
    }
    tarn_allocator_destroy(soak->allocator);
    tarn_history_destroy(soak->history);
}

/* Whether counters of pools that are gone still become more: they are kept up to a bound, which a
 * short run does not reach. */
static bool fills_records(const struct soak *soak, uint64_t steps)
{
    const uint64_t full = TARN_POOL_RESERVED_MAX + GRAPHS;

    return steps / CAPTURE_EVERY > full && soak->captures <= full;
}

static bool run(const char *conf, uint64_t steps, uint64_t blocks)
{
    struct soak soak = {0};
    struct footprint before = {0};
    struct footprint now = {0};
    bool grew = false;

    begin(&soak, conf);
    for (uint64_t block = 1; block <= blocks && !grew; block++) {
        now = run_block(&soak, steps / blocks);
        if (block <= 2 || fills_records(&soak, steps)) {
            before = now; /* tables have their size after the first, the ring of graphs is full */
        }
        grew = footprint_grew(block, &now, &before);
    }
    (void)printf("%s: %" PRIu64 " steps, %" PRIu64 " events, %.1f hours: %" PRIu64
                 " bytes reserved at the peak, %" PRIu64 " of the host; %s\n",
                 conf[0] ? conf : "default settings", steps, soak.events,
                 (double)tarn_sim_now_ns(soak.device) / 3.6e12, now.reserved_peak, now.heap,
                 grew ? "it grew" : "nothing grew");
    end(&soak);
    return !grew;
}

int main(int argc, char **argv)
{
    const char *conf = "";
    uint64_t steps = 864000;
    uint64_t blocks = 24;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--conf") == 0) {
            conf = argv[i + 1];
        } else if (strcmp(argv[i], "--steps") == 0) {
            steps = strtoull(argv[i + 1], NULL, 10);
        } else if (strcmp(argv[i], "--blocks") == 0) {
            blocks = strtoull(argv[i + 1], NULL, 10);
        } else {
            blocks = 0;
        }
    }
    if (argc % 2 == 0 || blocks < 3 || steps / blocks < (uint64_t)CAPTURE_EVERY * GRAPHS) {
        (void)fprintf(stderr, "usage: soak [--conf SETTINGS] [--steps N] [--blocks N]\n");
        return 2;
    }
    return run(conf, steps, blocks) ? 0 : 1;
}
