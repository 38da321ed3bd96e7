/* SPDX-License-Identifier: MIT */
/*
 * bench [--origin TEXT] [--scale X] [--name NAME] [--only REGEX] [SNAPSHOT...]: the patterns of
 * patterns.h on the simulated device and the replay of recorded snapshots, one line of CSV each on
 * standard output (figure.h). With a name, for another build of libtarn: the default settings
 * alone, under it. With --only, the patterns and replays whose names match.
 */
#include "figure.h"
#include "only.h"
#include "patterns.h"
#include "tarn_adapter.h"

#include "tarn/replay.h"

#include <stdlib.h>
#include <string.h>

static const char *origin;
static const char *only_name; /* NULL: the usual two */

static void fail(const char *what, const struct tarn_error *error)
{
    (void)fprintf(stderr, "bench: %s: %s\n", what, error->text);
    exit(1);
}

static void run_patterns(const char *name, double scale)
{
    struct bench_tarn tarn;

    bench_tarn_open_named(&tarn, name);
    for (size_t i = 0; i < bench_pattern_count(); i++) {
        double ns[BENCH_REPEATS];

        if (!bench_only_wants(bench_pattern_name(i))) {
            continue;
        }
        for (size_t k = 0; k < BENCH_REPEATS; k++) {
            ns[k] = bench_pattern_run(i, &tarn.measured, scale);
        }
        const struct bench_figure figure = bench_figure_of(ns, BENCH_REPEATS);

        bench_figure_print(stdout, origin, only_name ? only_name : tarn.measured.name,
                           bench_pattern_name(i), "ns", &figure);
    }
    bench_tarn_close(&tarn);
}

/* "replay_" and the file's name up to its first dot. */
static void name_replay(const char *path, char *name, size_t size)
{
    const char *slash = strrchr(path, '/');

    (void)snprintf(name, size, "replay_%s", slash ? slash + 1 : path);
    name[strcspn(name, ".")] = '\0';
}

/* Nanoseconds per operation of the trace. */
static void run_replay(const char *path, const char *pattern, const char *name, const char *conf)
{
    struct tarn_replay_options options = {.struct_size = sizeof options, .conf = conf};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_replay *replay = NULL;
    struct tarn_error error;
    double ns[BENCH_REPEATS];

    if (tarn_snapshot_load(path, NULL, &snapshot, &error) ||
        tarn_replay_create(snapshot, -1, &replay, &error)) {
        fail(path, &error);
    }
    for (int i = 0; i < BENCH_REPEATS; i++) {
        if (tarn_replay_run(replay, &options, &result, &error)) {
            fail(path, &error);
        }
        ns[i] = (double)result.wall_ns / (double)result.operations;
    }
    const struct bench_figure figure = bench_figure_of(ns, BENCH_REPEATS);

    bench_figure_print(stdout, origin, name, pattern, "ns", &figure);
    tarn_replay_destroy(replay);
    tarn_snapshot_destroy(snapshot);
}

int main(int argc, char **argv)
{
    double scale = 1.0;
    int first = 1;

    for (; first + 1 < argc; first += 2) {
        if (strcmp(argv[first], "--scale") == 0) {
            scale = strtod(argv[first + 1], NULL);
        } else if (strcmp(argv[first], "--origin") == 0) {
            origin = argv[first + 1];
        } else if (strcmp(argv[first], "--name") == 0) {
            only_name = argv[first + 1];
        } else if (strcmp(argv[first], "--only") == 0) {
            bench_only_set(argv[first + 1]);
        } else {
            break;
        }
    }
    run_patterns("tarn", scale);
    if (!only_name) {
        run_patterns("tarn-expandable", scale);
    }
    for (int i = first; i < argc; i++) {
        char pattern[160];

        name_replay(argv[i], pattern, sizeof pattern);
        if (!bench_only_wants(pattern)) {
            continue;
        }
        run_replay(argv[i], pattern, only_name ? only_name : "tarn", "");
        if (!only_name) {
            run_replay(argv[i], pattern, "tarn-expandable", "expandable_segments:True");
        }
    }
    return 0;
}
