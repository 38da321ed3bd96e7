/* SPDX-License-Identifier: MIT */
/*
 * snapshot [--origin TEXT]: a snapshot of 100,000 events with stacks and 10,000 blocks, in
 * milliseconds. One line of CSV each on standard output (figure.h):
 *
 *   history_snapshot_lock     for which the allocator's lock is held
 *   history_snapshot_capture  all of it, until the snapshot is there
 *   history_snapshot_write    as a pickle, to a file
 *
 * The same three as history_busy_...: of a million events, while another thread allocates and
 * frees as fast as it can.
 */
#include "figure.h"
#include "patterns.h"
#include "recording.h"

#include "capture/live_copy.h"
#include "tarn/capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const char *origin;

enum {
    BLOCKS = 10000,
    DEPTHS = 64, /* different stacks of allocations, and of frees */
    BUSY_ENTRIES = 1000000,
    BUSY_REPEATS = 20
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

static void report_ms(const char *pattern, double *ms, size_t count)
{
    const struct bench_figure figure = bench_figure_of(ms, count);

    bench_figure_print(stdout, origin, "tarn-history-stacks", pattern, "ms", &figure);
}

/* ---- what is measured ---- */

struct subject {
    struct bench_recording recording;
    tarn_ptr slots[BLOCKS];
    int next;
    _Atomic bool stop;
};

static void churn(struct subject *subject, int count)
{
    for (int i = 0; i < count; i++) {
        const int at = subject->next++ % (BLOCKS * DEPTHS);

        churn_deep(&subject->recording.tarn, &subject->slots[at % BLOCKS], at % DEPTHS);
        subject->next %= BLOCKS * DEPTHS;
    }
}

static void *churn_on(void *argument)
{
    struct subject *subject = argument;

    while (!atomic_load(&subject->stop)) {
        churn(subject, 100);
    }
    return NULL;
}

static struct subject *subject_open(int entries)
{
    static const struct bench_setting setting = {"tarn-history-stacks", true, true,
                                                 TARN_CONTEXT_ALL, TARN_STACK_FRAME_POINTERS};
    struct subject *subject = bench_must_alloc(1, sizeof *subject);
    struct tarn_error error;

    bench_recording_open(&subject->recording, &setting);
    if (tarn_history_set_max_entries(subject->recording.history, (uint64_t)entries, &error)) {
        bench_fail(&error);
    }
    churn(subject, entries);
    return subject;
}

static void subject_close(struct subject *subject)
{
    bench_recording_close(&subject->recording);
    free(subject);
}

static void measure(const struct subject *subject, const char *const patterns[3], size_t repeats)
{
    double held[BUSY_REPEATS];
    double captured[BUSY_REPEATS];
    double written[BUSY_REPEATS];
    char path[300];
    const char *folder = getenv("TMPDIR");

    (void)snprintf(path, sizeof path, "%s/tarn-bench.pickle", folder ? folder : "/tmp");
    for (size_t k = 0; k < repeats; k++) {
        struct tarn_snapshot *snapshot;

        held[k] = lock_held_ms(&subject->recording);
        captured[k] = capture_ms(&subject->recording, &snapshot);
        written[k] = write_ms(snapshot, path);
        tarn_snapshot_destroy(snapshot);
    }
    report_ms(patterns[0], held, repeats);
    report_ms(patterns[1], captured, repeats);
    report_ms(patterns[2], written, repeats);
}

static void measure_idle(void)
{
    static const char *const patterns[] = {"history_snapshot_lock", "history_snapshot_capture",
                                           "history_snapshot_write"};
    struct subject *subject = subject_open(BENCH_ENTRIES);

    measure(subject, patterns, BENCH_REPEATS);
    subject_close(subject);
}

static void measure_busy(void)
{
    static const char *const patterns[] = {"history_busy_lock", "history_busy_capture",
                                           "history_busy_write"};
    struct subject *subject = subject_open(BUSY_ENTRIES);
    pthread_t thread;

    if (pthread_create(&thread, NULL, churn_on, subject)) {
        (void)fprintf(stderr, "bench: no thread\n");
        exit(1);
    }
    measure(subject, patterns, BUSY_REPEATS);
    atomic_store(&subject->stop, true);
    (void)pthread_join(thread, NULL);
    subject_close(subject);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--origin") == 0) {
        origin = argv[2];
    }
    measure_idle();
    measure_busy();
    return 0;
}
