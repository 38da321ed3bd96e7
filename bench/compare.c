/* SPDX-License-Identifier: MIT */
/*
 * compare [--origin TEXT] [--csv FILE] [--rounds N] [--seconds S] [--turn S] [--scale X]
 * [--only REGEX] FOLDER: the patterns of patterns.h through several allocators, in one run. FOLDER
 * has the workers (worker.h); those that are not there are left out, and whoever builds them says
 * why. Somebody else's allocator appears in the figures as NAME@VERSION.
 *
 * Each allocator is a process of its own, since PyTorch reads its settings once. They take turns:
 * in a round of a pattern every allocator runs it once while the others wait, so that a machine
 * that slows down or speeds up does so for all of them. A figure is the median of the rounds. It is
 * appended to FILE (standard output without one) when the pattern is done.
 *
 * Some patterns take others a hundred times as long as tarn, so where the number of operations does
 * not matter a short run says first how many take about --turn seconds. When --seconds are over,
 * the rest gets one round each. A worker that ends or says nothing for ANSWER_SECONDS is started
 * again, a few times at most; it has no figure for that pattern.
 */
#include "figure.h"
#include "only.h"
#include "patterns.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROBE_SCALE 0.05
#define SCALE_MAX   4.0

enum {
    ROUNDS_MAX = 99,
    ANSWER_SECONDS = 30,
    START_SECONDS = 120, /* PyTorch's libraries are large */
    STARTS_MAX = 3,
    VERSION_SIZE = 64
};

struct contestant {
    const char *name;
    const char *program;
    const char *conf; /* PYTORCH_CUDA_ALLOC_CONF, "" = not set */
    pid_t pid;        /* 0 = does not run */
    int to;
    int from;
    int starts;
    size_t rounds; /* of this pattern */
    char version[VERSION_SIZE];
    double scale;
    double ns[ROUNDS_MAX];
};

static struct contestant contestants[] = {
    {.name = "tarn", .program = "worker_tarn", .conf = ""},
    {.name = "tarn-expandable", .program = "worker_tarn", .conf = "expandable_segments:True"},
    {.name = "tarn-compact", .program = "worker_tarn", .conf = "policy:compact"},
    {.name = "torch-native", .program = "worker_torch", .conf = ""},
    {.name = "torch-expandable", .program = "worker_torch", .conf = "expandable_segments:True"},
    {.name = "cudaMallocAsync", .program = "worker_async", .conf = ""},
    {.name = "vma", .program = "worker_vma", .conf = ""},
    {.name = "OffsetAllocator", .program = "worker_offset", .conf = ""},
    {.name = "std::set", .program = "worker_set", .conf = ""},
    {.name = "mimalloc", .program = "worker_mimalloc", .conf = ""},
    {.name = "jemalloc", .program = "worker_jemalloc", .conf = ""},
};

enum {
    CONTESTANTS = sizeof contestants / sizeof contestants[0]
};

struct run {
    const char *folder;
    const char *origin;
    FILE *csv;
    size_t rounds;
    double scale;
    double turn_seconds;
    double deadline_ns;
};

static void fail(const char *what)
{
    (void)fprintf(stderr, "compare: %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- workers ---- */

static void become_worker(const struct contestant *c, const char *path, const int *to,
                          const int *from)
{
    (void)unsetenv("TARN_ALLOC_CONF");
    (void)unsetenv("PYTORCH_ALLOC_CONF");
    (void)unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    (void)unsetenv("PYTORCH_NO_CUDA_MEMORY_CACHING");
    if ((!*c->conf || setenv("PYTORCH_CUDA_ALLOC_CONF", c->conf, 1) == 0) &&
        dup2(to[0], STDIN_FILENO) >= 0 && dup2(from[1], STDOUT_FILENO) >= 0) {
        (void)execl(path, path, (char *)NULL);
    }
    fail(path);
}

/* Ends of pipes that only the two processes have which they connect. */
static void open_pipe(int *ends)
{
    if (pipe(ends) != 0 || fcntl(ends[0], F_SETFD, FD_CLOEXEC) != 0 ||
        fcntl(ends[1], F_SETFD, FD_CLOEXEC) != 0) {
        fail("pipe");
    }
}

static void worker_stop(struct contestant *c)
{
    (void)kill(c->pid, SIGKILL);
    (void)waitpid(c->pid, NULL, 0);
    (void)close(c->to);
    (void)close(c->from);
    c->pid = 0;
}

/* Waits for one line of the worker; false if none comes. */
static bool worker_listen(const struct contestant *c, int seconds, char *line, size_t size)
{
    const double until = bench_now_ns() + seconds * 1e9;
    size_t used = 0;

    while (used + 1 < size) {
        struct pollfd ready = {.fd = c->from, .events = POLLIN};
        const double left_ms = (until - bench_now_ns()) / 1e6;

        if (left_ms <= 0 || poll(&ready, 1, (int)left_ms + 1) < 0) {
            (void)fprintf(stderr, "compare: %s said nothing for %d s\n", c->name, seconds);
            return false;
        }
        if (ready.revents == 0) {
            continue;
        }
        if (read(c->from, line + used, 1) != 1) {
            (void)fprintf(stderr, "compare: %s ended\n", c->name);
            return false;
        }
        if (line[used] == '\n') {
            line[used] = '\0';
            return true;
        }
        used++;
    }
    return false;
}

static void worker_start(struct contestant *c, const char *folder)
{
    char path[4096];
    char line[80];
    int to[2];
    int from[2];

    (void)snprintf(path, sizeof path, "%s/%s", folder, c->program);
    if (access(path, X_OK) != 0) {
        c->starts = STARTS_MAX;
        return;
    }
    open_pipe(to);
    open_pipe(from);
    c->starts++;
    c->to = to[1];
    c->from = from[0];
    c->pid = fork();
    if (c->pid < 0) {
        fail("fork");
    }
    if (c->pid == 0) {
        become_worker(c, path, to, from);
    }
    (void)close(to[0]);
    (void)close(from[1]);
    if (!worker_listen(c, START_SECONDS, line, sizeof line) || strncmp(line, "ready", 5) != 0) {
        worker_stop(c);
        return;
    }
    (void)snprintf(c->version, sizeof c->version, "%.*s", VERSION_SIZE - 1,
                   line[5] == ' ' ? line + 6 : "");
}

/* One run of a pattern; 0 if the worker has no answer or is lost. */
static double worker_run(struct contestant *c, size_t pattern, double scale)
{
    char line[80];
    const int length = snprintf(line, sizeof line, "%zu %.6f\n", pattern, scale);

    if (write(c->to, line, (size_t)length) == length &&
        worker_listen(c, ANSWER_SECONDS, line, sizeof line)) {
        const double ns = strtod(line, NULL);

        if (ns > 0 || strcmp(line, "skip") == 0) {
            return ns;
        }
        (void)fprintf(stderr, "compare: %s answered \"%s\"\n", c->name, line);
    }
    worker_stop(c);
    return 0;
}

/* ---- a pattern ---- */

/* How long the turns are: as the pattern says, or as a short run says. */
static void choose_scale(const struct run *run, struct contestant *c, size_t pattern)
{
    c->scale = run->scale;
    if (!bench_pattern_is_steady(pattern)) {
        return;
    }
    const double begin = bench_now_ns();

    if (worker_run(c, pattern, PROBE_SCALE) > 0) {
        const double seconds = (bench_now_ns() - begin) / 1e9;
        double factor = PROBE_SCALE * run->turn_seconds / seconds;

        factor = factor < PROBE_SCALE ? PROBE_SCALE : factor;
        c->scale = run->scale * (factor > SCALE_MAX ? SCALE_MAX : factor);
    }
}

static void report(const struct run *run, struct contestant *c, size_t pattern)
{
    char name[VERSION_SIZE + 32];

    if (c->rounds == 0) {
        return;
    }
    const struct bench_figure figure = bench_figure_of(c->ns, c->rounds);

    (void)snprintf(name, sizeof name, "%s%s%s", c->name, *c->version ? "@" : "", c->version);
    bench_figure_print(run->csv, run->origin, name, bench_pattern_name(pattern), "ns", &figure);
    (void)fprintf(stderr, " %s %.1f", c->name, figure.median);
}

static void run_pattern(const struct run *run, size_t pattern)
{
    for (size_t i = 0; i < CONTESTANTS; i++) {
        struct contestant *c = &contestants[i];

        c->rounds = 0;
        if (c->pid == 0 && c->starts < STARTS_MAX) {
            worker_start(c, run->folder);
        }
        if (c->pid != 0) {
            choose_scale(run, c, pattern);
        }
    }
    for (size_t round = 0; round < run->rounds; round++) {
        if (round > 0 && bench_now_ns() > run->deadline_ns) {
            break;
        }
        for (size_t i = 0; i < CONTESTANTS; i++) {
            struct contestant *c = &contestants[i];
            const double ns = c->pid != 0 ? worker_run(c, pattern, c->scale) : 0;

            if (ns > 0) {
                c->ns[c->rounds++] = ns;
            }
        }
    }
    (void)fprintf(stderr, "%s:", bench_pattern_name(pattern));
    for (size_t i = 0; i < CONTESTANTS; i++) {
        report(run, &contestants[i], pattern);
    }
    (void)fprintf(stderr, "\n");
}

static void usage(void)
{
    (void)fprintf(stderr, "usage: compare [--origin TEXT] [--csv FILE] [--rounds N] [--seconds S] "
                          "[--turn S] [--scale X] [--only REGEX] FOLDER\n");
    exit(2);
}

static void read_option(struct run *run, const char *name, const char *value)
{
    if (strcmp(name, "--origin") == 0) {
        run->origin = value;
    } else if (strcmp(name, "--rounds") == 0) {
        run->rounds = strtoul(value, NULL, 10);
    } else if (strcmp(name, "--seconds") == 0) {
        run->deadline_ns = bench_now_ns() + strtod(value, NULL) * 1e9;
    } else if (strcmp(name, "--scale") == 0) {
        run->scale = strtod(value, NULL);
    } else if (strcmp(name, "--turn") == 0) {
        run->turn_seconds = strtod(value, NULL);
    } else if (strcmp(name, "--only") == 0) {
        bench_only_set(value);
    } else if (strcmp(name, "--csv") == 0) {
        run->csv = fopen(value, "a");
        if (!run->csv) {
            fail(value);
        }
    } else {
        usage();
    }
}

int main(int argc, char **argv)
{
    struct run run = {.csv = stdout, .rounds = 7, .scale = 1.0, .turn_seconds = 0.4};
    int i = 1;

    run.deadline_ns = bench_now_ns() + 240e9;
    for (; i + 1 < argc; i += 2) {
        read_option(&run, argv[i], argv[i + 1]);
    }
    if (i + 1 != argc || run.rounds < 1 || run.rounds > ROUNDS_MAX || !(run.scale > 0)) {
        usage();
    }
    run.folder = argv[i];
    (void)signal(SIGPIPE, SIG_IGN);
    for (size_t pattern = 0; pattern < bench_pattern_count(); pattern++) {
        if (bench_only_wants(bench_pattern_name(pattern))) {
            run_pattern(&run, pattern);
        }
    }
    for (size_t k = 0; k < CONTESTANTS; k++) {
        if (contestants[k].pid != 0) {
            worker_stop(&contestants[k]);
        }
    }
    return 0;
}
