/* SPDX-License-Identifier: MIT */
/*
 * reader [--origin TEXT] TARN NAME SNAPSHOT EVENTS: how fast a snapshot is read, and how fast the
 * program answers from it. Lines of CSV on standard output (figure.h), the pattern ending in _NAME:
 *
 *   read_mb, read_events    MB and millions of entries a second, from a file in the page cache
 *   read_bytes              host bytes an entry that the loaded snapshot holds, stacks included
 *   read_info, _peak, ...   milliseconds of a whole run of the program TARN
 *   read_rss                most resident memory of `tarn info` in MiB
 *
 * reader --load SNAPSHOT...: one number, the seconds that loading all of them takes, one after the
 * other. Memory is that of the program, from huge pages where the system has them.
 */
#include "figure.h"
#include "huge_pages.h"

#include "tarn/host.h"
#include "tarn/snapshot.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum {
    REPEATS = 5,
    NAME_MAX_BYTES = 64
};

static const char *origin;

static void figure_put(const char *what, const char *name, const char *unit, double *values,
                       size_t count)
{
    char pattern[NAME_MAX_BYTES];
    const struct bench_figure figure = bench_figure_of(values, count);

    (void)snprintf(pattern, sizeof pattern, "read_%s_%s", what, name);
    bench_figure_print(stdout, origin, "tarn", pattern, unit, &figure);
}

/* Seconds of loading it; *bytes_out is what it then holds. */
static double load_seconds(const char *path, uint64_t *bytes_out)
{
    const uint64_t before = tarn_host_get_usage().live_bytes;
    struct tarn_snapshot *snapshot;
    struct tarn_error error;
    const double begin = bench_now_ns();

    if (tarn_snapshot_load(path, NULL, &snapshot, &error)) {
        (void)fprintf(stderr, "reader: %s\n", error.text);
        exit(1);
    }
    const double seconds = (bench_now_ns() - begin) / 1e9;

    *bytes_out = tarn_host_get_usage().live_bytes - before;
    tarn_snapshot_destroy(snapshot);
    return seconds;
}

static void measure_reading(const char *name, const char *path, double events)
{
    double mb[REPEATS];
    double millions[REPEATS];
    double bytes_an_event;
    struct stat info;
    uint64_t bytes = 0;

    if (stat(path, &info) != 0) {
        (void)fprintf(stderr, "reader: cannot read %s\n", path);
        exit(1);
    }
    for (size_t i = 0; i < REPEATS; i++) {
        const double seconds = load_seconds(path, &bytes);

        mb[i] = (double)info.st_size / 1e6 / seconds;
        millions[i] = events / 1e6 / seconds;
    }
    bytes_an_event = (double)bytes / events;
    figure_put("mb", name, "MB/s", mb, REPEATS);
    figure_put("events", name, "M/s", millions, REPEATS);
    figure_put("bytes", name, "bytes", &bytes_an_event, 1);
}

/* Seconds of one run of the program, its output thrown away. */
static double run_seconds(const char *tarn, const char *command, const char *path)
{
    char *const arguments[] = {(char *)(uintptr_t)tarn, (char *)(uintptr_t)command,
                               (char *)(uintptr_t)path, NULL};
    char *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    const double begin = bench_now_ns();
    int status = -1;
    pid_t child;

    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0) != 0 ||
        posix_spawn(&child, tarn, &actions, NULL, arguments, environment) != 0 ||
        waitpid(child, &status, 0) != child || status != 0) {
        (void)fprintf(stderr, "reader: %s %s failed\n", tarn, command);
        exit(1);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return (bench_now_ns() - begin) / 1e9;
}

static void measure_command(const char *tarn, const char *command, const char *name,
                            const char *path)
{
    double ms[REPEATS];

    for (size_t i = 0; i < REPEATS; i++) {
        ms[i] = run_seconds(tarn, command, path) * 1000;
    }
    figure_put(command, name, "ms", ms, REPEATS);
}

static int load_all(char **paths, int count)
{
    double seconds = 0;

    for (int i = 0; i < count; i++) {
        uint64_t bytes;

        seconds += load_seconds(paths[i], &bytes);
    }
    (void)printf("%.6f\n", seconds);
    return 0;
}

int main(int argc, char **argv)
{
    static const char *const commands[] = {"info", "peak", "top", "oom"};
    int at = 1;

    if (argc > 2 && strcmp(argv[1], "--load") == 0) {
        cli_huge_pages_init();
        return load_all(argv + 2, argc - 2);
    }
    if (argc > 2 && strcmp(argv[1], "--origin") == 0) {
        origin = argv[2];
        at = 3;
    }
    if (argc != at + 4) {
        (void)fprintf(stderr, "usage: reader [--origin TEXT] TARN NAME SNAPSHOT EVENTS\n"
                              "       reader --load SNAPSHOT...\n");
        return 2;
    }
    const char *tarn = argv[at];
    const char *name = argv[at + 1];
    const char *path = argv[at + 2];
    const double events = strtod(argv[at + 3], NULL);
    struct rusage usage;
    double rss;

    measure_command(tarn, "info", name, path);
    (void)getrusage(RUSAGE_CHILDREN, &usage);
    rss = (double)usage.ru_maxrss / 1024;
    figure_put("rss", name, "MiB", &rss, 1);
    for (size_t i = 1; events < 5e6 && i < sizeof commands / sizeof *commands; i++) {
        measure_command(tarn, commands[i], name, path);
    }
    measure_reading(name, path, events);
    return 0;
}
