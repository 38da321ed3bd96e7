/* SPDX-License-Identifier: MIT */
/*
 * history [--origin TEXT] [--scale X]: what recording costs, on the simulated device. Patterns of
 * patterns.h run without a history, with one that is switched off, and recording: without stacks,
 * with C stacks of 32 frames by frame pointers, and by unwinding. One line of CSV each on standard
 * output (figure.h):
 *
 *   history_X        ns per pair, as the patterns without
 *   history_event_X  ns per event: what a pair takes longer than without a history, by its three
 *                    events
 *
 * And a snapshot of 100,000 events with stacks and 10,000 blocks, in milliseconds:
 *
 *   history_snapshot_lock     for which the allocator's lock is held
 *   history_snapshot_capture  all of it, until the snapshot is there
 *   history_snapshot_write    as a pickle, to a file
 *
 * The ring is filled before the clock starts, so that every event also lets one go.
 */
#include "figure.h"
#include "patterns.h"
#include "tarn_adapter.h"

#include "capture/live_copy.h"
#include "tarn/capture.h"

#include <stdlib.h>
#include <string.h>

enum {
    FRAMES = 32,
    EVENTS_A_PAIR = 3, /* alloc, free_requested, free_completed */
    ENTRIES = 100000
};

static const char *origin;
static double scale = 1.0;

static const char *const measured_patterns[] = {"hot_4KiB", "ladder_small_256", "churn_small_4096",
                                                "threads_own_stream_1", "threads_own_stream_2"};

enum {
    PATTERNS = sizeof measured_patterns / sizeof measured_patterns[0]
};

struct setting {
    const char *name;
    bool has_history;
    bool is_on;
    enum tarn_context_level level;
    enum tarn_stack_source source;
};

static const struct setting settings[] = {
    {"tarn", false, false, TARN_CONTEXT_NEVER, TARN_STACK_NONE},
    {"tarn-history-off", true, false, TARN_CONTEXT_NEVER, TARN_STACK_NONE},
    {"tarn-history", true, true, TARN_CONTEXT_NEVER, TARN_STACK_NONE},
    {"tarn-history-stacks", true, true, TARN_CONTEXT_ALL, TARN_STACK_FRAME_POINTERS},
    {"tarn-history-unwind", true, true, TARN_CONTEXT_ALL, TARN_STACK_UNWIND},
};

enum {
    SETTINGS = sizeof settings / sizeof settings[0]
};

struct run {
    struct bench_tarn tarn;
    struct tarn_history *history;
    size_t pattern;
    double ns;
};

static void fail(const struct tarn_error *error)
{
    (void)fprintf(stderr, "history: %s\n", error->text);
    exit(1);
}

/* Runs the pattern below so many calls, so that its stacks are deep enough. */
static __attribute__((noinline)) void run_deep(struct run *run, int calls)
{
    if (calls > 0) {
        run_deep(run, calls - 1);
    } else {
        run->ns = bench_pattern_run(run->pattern, &run->tarn.measured, scale);
    }
    __asm__ volatile("" ::: "memory"); /* no call becomes a jump */
}

static void run_open(struct run *run, const struct setting *setting)
{
    const struct tarn_history_options options = {
        .struct_size = sizeof options,
        .stack_source = setting->source,
        .max_frames = FRAMES,
        .max_entries = ENTRIES,
    };
    struct tarn_sink sink;
    struct tarn_error error;

    bench_tarn_open_named(&run->tarn, false);
    if (setting->has_history) {
        if (tarn_history_create(&options, &run->history, &error)) {
            fail(&error);
        }
        tarn_history_get_sink(run->history, setting->level, &sink);
        if (tarn_allocator_add_sink(run->tarn.allocator, &sink, &error) ||
            tarn_allocator_set_sink(run->tarn.allocator, run->history, setting->is_on,
                                    setting->level, &error)) {
            fail(&error);
        }
    }
    for (int i = 0; i < ENTRIES / 2; i++) {
        const struct bench_allocator *a = &run->tarn.measured;

        a->free(a->context, a->alloc(a->context, 512, a->streams[0]), a->streams[0]);
    }
}

static void run_close(struct run *run)
{
    bench_tarn_close(&run->tarn);
    tarn_history_destroy(run->history);
}

static size_t find_pattern(const char *name)
{
    size_t pattern = 0;

    while (pattern < bench_pattern_count() && strcmp(bench_pattern_name(pattern), name) != 0) {
        pattern++;
    }
    return pattern;
}

/* All settings in turn, round after round: a machine that slows down does so for all. */
static void measure(const char *name)
{
    struct run runs[SETTINGS] = {{.ns = 0}};
    double ns[SETTINGS][BENCH_REPEATS];
    char pattern[80];

    for (size_t s = 0; s < SETTINGS; s++) {
        run_open(&runs[s], &settings[s]);
        runs[s].pattern = find_pattern(name);
    }
    for (size_t k = 0; k < BENCH_REPEATS; k++) {
        for (size_t s = 0; s < SETTINGS; s++) {
            run_deep(&runs[s], FRAMES);
            ns[s][k] = runs[s].ns;
        }
    }
    (void)snprintf(pattern, sizeof pattern, "history_%s", name);
    for (size_t s = 0; s < SETTINGS; s++) {
        const struct bench_figure figure = bench_figure_of(ns[s], BENCH_REPEATS);

        bench_figure_print(stdout, origin, settings[s].name, pattern, "ns", &figure);
        run_close(&runs[s]);
    }
    (void)snprintf(pattern, sizeof pattern, "history_event_%s", name);
    for (size_t s = 1; s < SETTINGS; s++) {
        double cost[BENCH_REPEATS];

        for (size_t k = 0; k < BENCH_REPEATS; k++) { /* sorted by now: like with like */
            const double more = ns[s][k] - ns[0][k];

            cost[k] = more > 0 ? more / EVENTS_A_PAIR : 0;
        }
        const struct bench_figure figure = bench_figure_of(cost, BENCH_REPEATS);

        bench_figure_print(stdout, origin, settings[s].name, pattern, "ns", &figure);
    }
}

/* ---- snapshots ---- */

enum {
    BLOCKS = 10000,
    DEPTHS = 64 /* different stacks of allocations, and of frees */
};

static __attribute__((noinline)) void churn_deep(struct bench_tarn *tarn, tarn_ptr *slot, int calls)
{
    const struct bench_allocator *a = &tarn->measured;

    if (calls > 0) {
        churn_deep(tarn, slot, calls - 1);
    } else {
        if (*slot) {
            a->free(a->context, *slot, 0);
        }
        *slot = a->alloc(a->context, 512, a->streams[0]);
    }
    __asm__ volatile("" ::: "memory");
}

static double lock_held_ms(const struct run *run)
{
    const struct tarn_capture_source source = {run->tarn.allocator, run->history};
    const struct tarn_capture_options options = {.struct_size = sizeof options};
    struct tarn_error error;
    struct tn_live_copy copy;

    if (tn_live_copy_init(&copy, &source, &options, true, &error)) {
        fail(&error);
    }
    const double ms = (double)copy.held_ns / 1e6;

    tn_live_copy_fini(&copy);
    return ms;
}

static double capture_ms(const struct run *run, struct tarn_snapshot **snapshot_out)
{
    const struct tarn_capture_source source = {run->tarn.allocator, run->history};
    struct tarn_error error;
    const double begin = bench_now_ns();

    if (tarn_snapshot_capture(&source, 1, NULL, snapshot_out, &error)) {
        fail(&error);
    }
    return (bench_now_ns() - begin) / 1e6;
}

static double write_ms(const struct tarn_snapshot *snapshot, const char *path)
{
    struct tarn_error error;
    const double begin = bench_now_ns();

    if (tarn_snapshot_save(snapshot, path, &error)) {
        fail(&error);
    }
    const double ms = (bench_now_ns() - begin) / 1e6;

    (void)remove(path);
    return ms;
}

static void report_ms(const char *pattern, double *ms)
{
    const struct bench_figure figure = bench_figure_of(ms, BENCH_REPEATS);

    bench_figure_print(stdout, origin, "tarn-history-stacks", pattern, "ms", &figure);
}

static void measure_snapshots(void)
{
    struct run run = {.ns = 0};
    tarn_ptr *slots = bench_must_alloc(BLOCKS, sizeof *slots);
    double held[BENCH_REPEATS];
    double captured[BENCH_REPEATS];
    double written[BENCH_REPEATS];
    char path[300];
    const char *folder = getenv("TMPDIR");

    (void)snprintf(path, sizeof path, "%s/tarn-bench.pickle", folder ? folder : "/tmp");
    run_open(&run, &settings[3]);
    for (int i = 0; i < ENTRIES; i++) {
        churn_deep(&run.tarn, &slots[i % BLOCKS], i % DEPTHS);
    }
    for (size_t k = 0; k < BENCH_REPEATS; k++) {
        struct tarn_snapshot *snapshot;

        held[k] = lock_held_ms(&run);
        captured[k] = capture_ms(&run, &snapshot);
        written[k] = write_ms(snapshot, path);
        tarn_snapshot_destroy(snapshot);
    }
    report_ms("history_snapshot_lock", held);
    report_ms("history_snapshot_capture", captured);
    report_ms("history_snapshot_write", written);
    run_close(&run);
    free(slots);
}

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--origin") == 0) {
            origin = argv[i + 1];
        } else if (strcmp(argv[i], "--scale") == 0) {
            scale = strtod(argv[i + 1], NULL);
        }
    }
    measure_snapshots();
    for (size_t i = 0; i < PATTERNS; i++) {
        measure(measured_patterns[i]);
    }
    return 0;
}
