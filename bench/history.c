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
 */
#include "figure.h"
#include "patterns.h"
#include "recording.h"

#include <stdlib.h>
#include <string.h>

enum {
    EVENTS_A_PAIR = 3 /* alloc, free_requested, free_completed */
};

static const char *origin;
static double scale = 1.0;

static const char *const measured_patterns[] = {"hot_4KiB", "ladder_small_256", "churn_small_4096",
                                                "threads_own_stream_1", "threads_own_stream_2"};

enum {
    PATTERNS = sizeof measured_patterns / sizeof measured_patterns[0]
};

static const struct bench_setting settings[] = {
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
    struct bench_recording recording;
    size_t pattern;
    double ns;
};

/* Runs the pattern below so many calls, so that its stacks are deep enough. */
static __attribute__((noinline)) void run_deep(struct run *run, int calls)
{
    if (calls > 0) {
        run_deep(run, calls - 1);
    } else {
        run->ns = bench_pattern_run(run->pattern, &run->recording.tarn.measured, scale);
    }
    __asm__ volatile("" ::: "memory"); /* no call becomes a jump */
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
        bench_recording_open(&runs[s].recording, &settings[s]);
        runs[s].pattern = find_pattern(name);
    }
    for (size_t k = 0; k < BENCH_REPEATS; k++) {
        for (size_t s = 0; s < SETTINGS; s++) {
            run_deep(&runs[s], BENCH_FRAMES);
            ns[s][k] = runs[s].ns;
        }
    }
    (void)snprintf(pattern, sizeof pattern, "history_%s", name);
    for (size_t s = 0; s < SETTINGS; s++) {
        const struct bench_figure figure = bench_figure_of(ns[s], BENCH_REPEATS);

        bench_figure_print(stdout, origin, settings[s].name, pattern, "ns", &figure);
        bench_recording_close(&runs[s].recording);
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

int main(int argc, char **argv)
{
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--origin") == 0) {
            origin = argv[i + 1];
        } else if (strcmp(argv[i], "--scale") == 0) {
            scale = strtod(argv[i + 1], NULL);
        }
    }
    for (size_t i = 0; i < PATTERNS; i++) {
        measure(measured_patterns[i]);
    }
    return 0;
}
