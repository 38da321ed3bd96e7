/* SPDX-License-Identifier: MIT */
/*
 * tracker [--origin TEXT] [--scale X]: what the memory tracker costs, in nanoseconds per event: an
 * operator that makes one tensor, its end, and a tensor that dies, at some depth of
 * modules, with many storages alive. One line of CSV each on standard output (figure.h):
 *
 *   tracker_depth_N   one event at a time, N modules active
 *   tracker_batch_N   a hundred events a call
 */
#include "tarn/tracker.h"
#include "draw.h"
#include "figure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    REPEATS = 9,
    LIVE = 4096,   /* storages alive */
    STEPS = 40000, /* of three events */
    EVENTS_A_STEP = 3,
    BATCH = 99
};

static const char *origin;
static double scale = 1.0;

static void must(enum tarn_status status, const struct tarn_error *error)
{
    if (status) {
        (void)fprintf(stderr, "tracker: %s\n", error->text);
        exit(1);
    }
}

static void apply(struct tarn_tracker *tracker, const struct tarn_track_event *events, size_t count)
{
    struct tarn_error error;

    must(tarn_tracker_apply(tracker, events, count, NULL, &error), &error);
}

static uint32_t name_of(struct tarn_tracker *tracker, enum tarn_track_names names, const char *text)
{
    struct tarn_error error;
    uint32_t id = 0;

    must(tarn_tracker_add_name(tracker, names, text, &id, &error), &error);
    return id;
}

/* A tracker with that many modules active, one in the other, and LIVE storages. */
static struct tarn_tracker *open_at_depth(unsigned depth)
{
    struct tarn_tracker *tracker = NULL;
    struct tarn_error error;
    char name[64];

    must(tarn_tracker_create(NULL, &tracker, &error), &error);
    (void)name_of(tracker, TARN_TRACK_DEVICE, "cuda:0");
    for (unsigned i = 0; i < depth; i++) {
        (void)snprintf(name, sizeof name, "Model.layers.%u", i);
        const struct tarn_track_event enter[] = {
            {.kind = TARN_TRACK_ENTER, .id = i, .name = name_of(tracker, TARN_TRACK_MODULE, name)},
            {.kind = TARN_TRACK_READY}};

        apply(tracker, enter, 2);
    }
    for (uint64_t i = 0; i < LIVE; i++) {
        const struct tarn_track_event create = {
            .kind = TARN_TRACK_CREATE, .category = TARN_TRACK_AUTO, .id = i, .bytes = 1000 + i};

        apply(tracker, &create, 1);
    }
    return tracker;
}

/* Operators: each makes a tensor, ends, and some other tensor dies. */
static struct tarn_track_event *make_events(size_t steps)
{
    struct tarn_track_event *events = bench_must_alloc(steps * EVENTS_A_STEP, sizeof *events);
    uint64_t *living = bench_must_alloc(LIVE, sizeof *living);
    struct bench_draw draw;

    bench_draw_init(&draw, 1);
    for (uint64_t i = 0; i < LIVE; i++) {
        living[i] = i;
    }
    for (size_t step = 0; step < steps; step++) {
        const size_t slot = (size_t)(bench_draw_next(&draw) % LIVE);
        struct tarn_track_event *event = events + step * EVENTS_A_STEP;

        event[0] = (struct tarn_track_event){.kind = TARN_TRACK_CREATE,
                                             .category = TARN_TRACK_AUTO,
                                             .id = LIVE + step,
                                             .bytes = bench_draw_size(&draw, 1e3, 1e8)};
        event[1] = (struct tarn_track_event){.kind = TARN_TRACK_OP_DONE};
        event[2] = (struct tarn_track_event){.kind = TARN_TRACK_DELETE, .id = living[slot]};
        living[slot] = LIVE + step;
    }
    free(living);
    return events;
}

/* Nanoseconds per event, `batch` of them a call. */
static double run(const struct tarn_track_event *events, size_t count, size_t batch, unsigned depth)
{
    struct tarn_tracker *tracker = open_at_depth(depth);
    const double begin = bench_now_ns();

    for (size_t i = 0; i < count; i += batch) {
        apply(tracker, events + i, count - i < batch ? count - i : batch);
    }
    const double ns = (bench_now_ns() - begin) / (double)count;

    tarn_tracker_destroy(tracker);
    return ns;
}

static void measure(unsigned depth, size_t batch, const char *name)
{
    const size_t steps = (size_t)(STEPS * scale) + 1;
    struct tarn_track_event *events = make_events(steps);
    double ns[REPEATS];
    char pattern[64];

    for (size_t k = 0; k < REPEATS; k++) {
        ns[k] = run(events, steps * EVENTS_A_STEP, batch, depth);
    }
    const struct bench_figure figure = bench_figure_of(ns, REPEATS);

    (void)snprintf(pattern, sizeof pattern, "tracker_%s_%u", name, depth);
    bench_figure_print(stdout, origin, "tarn", pattern, "ns", &figure);
    free(events);
}

int main(int argc, char **argv)
{
    static const unsigned depths[] = {1, 6, 16};

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--origin") == 0) {
            origin = argv[i + 1];
        } else if (strcmp(argv[i], "--scale") == 0) {
            scale = strtod(argv[i + 1], NULL);
        }
    }
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        measure(depths[i], 1, "depth");
        measure(depths[i], BATCH, "batch");
    }
    return 0;
}
