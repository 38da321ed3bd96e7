/* SPDX-License-Identifier: MIT */
/*
 * snapshot [--origin TEXT]: a snapshot of 100,000 events with stacks and 10,000 blocks, in
 * milliseconds. One line of CSV each on standard output (figure.h):
 *
 *   history_snapshot_lock     for which the allocator's lock is held
 *   history_snapshot_capture  all of it, until the snapshot is there
 *   history_snapshot_write    as a pickle, to a file
 */
#include "figure.h"
#include "patterns.h"
#include "recording.h"

#include "capture/live_copy.h"
#include "tarn/capture.h"

#include <stdlib.h>
#include <string.h>

static const char *origin;

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

static double lock_held_ms(const struct bench_recording *recording)
{
    const struct tarn_capture_source source = {recording->tarn.allocator, recording->history};
    const struct tarn_capture_options options = {.struct_size = sizeof options};
    struct tarn_error error;
    struct tn_live_copy copy;

    if (tn_live_copy_init(&copy, &source, &options, true, &error)) {
        bench_fail(&error);
    }
    const double ms = (double)copy.held_ns / 1e6;

    tn_live_copy_fini(&copy);
    return ms;
}

static double capture_ms(const struct bench_recording *recording,
                         struct tarn_snapshot **snapshot_out)
{
    const struct tarn_capture_source source = {recording->tarn.allocator, recording->history};
    struct tarn_error error;
    const double begin = bench_now_ns();

    if (tarn_snapshot_capture(&source, 1, NULL, snapshot_out, &error)) {
        bench_fail(&error);
    }
    return (bench_now_ns() - begin) / 1e6;
}

static double write_ms(const struct tarn_snapshot *snapshot, const char *path)
{
    struct tarn_error error;
    const double begin = bench_now_ns();

    if (tarn_snapshot_save(snapshot, path, &error)) {
        bench_fail(&error);
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
    static const struct bench_setting setting = {"tarn-history-stacks", true, true,
                                                 TARN_CONTEXT_ALL, TARN_STACK_FRAME_POINTERS};
    struct bench_recording recording;
    tarn_ptr *slots = bench_must_alloc(BLOCKS, sizeof *slots);
    double held[BENCH_REPEATS];
    double captured[BENCH_REPEATS];
    double written[BENCH_REPEATS];
    char path[300];
    const char *folder = getenv("TMPDIR");

    (void)snprintf(path, sizeof path, "%s/tarn-bench.pickle", folder ? folder : "/tmp");
    bench_recording_open(&recording, &setting);
    for (int i = 0; i < BENCH_ENTRIES; i++) {
        churn_deep(&recording.tarn, &slots[i % BLOCKS], i % DEPTHS);
    }
    for (size_t k = 0; k < BENCH_REPEATS; k++) {
        struct tarn_snapshot *snapshot;

        held[k] = lock_held_ms(&recording);
        captured[k] = capture_ms(&recording, &snapshot);
        written[k] = write_ms(snapshot, path);
        tarn_snapshot_destroy(snapshot);
    }
    report_ms("history_snapshot_lock", held);
    report_ms("history_snapshot_capture", captured);
    report_ms("history_snapshot_write", written);
    bench_recording_close(&recording);
    free(slots);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--origin") == 0) {
        origin = argv[2];
    }
    measure_snapshots();
    return 0;
}
