/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE /* dladdr, MAP_ANONYMOUS, strsignal */
#include "schedule/explore.h"

#include "support/exit.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BATCH = 250,         /* schedules of one process */
    BATCH_SECONDS = 300, /* then it hangs */
    TRIALS_MAX = 600     /* schedules run to shrink one */
};

/* Shared with the child that runs the schedules. */
struct outcome {
    uint64_t seed; /* of the last schedule that began */
    uint64_t fingerprint;
    char text[256]; /* what is wrong */
    struct schedule_list made;
    struct schedule_list prescribed;
};

static struct outcome *outcome_shared(void)
{
    static struct outcome *shared;

    if (!shared) {
        void *memory =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

        if (memory == MAP_FAILED) {
            perror("mmap");
            exit(2);
        }
        shared = memory;
    }
    return shared;
}

static const char *end_text(enum schedule_end end)
{
    return end == SCHEDULE_DEADLOCK ? "deadlock: all threads that are left sleep"
                                    : "livelock: threads only wait for each other";
}

/* In the child. */
static void run_one(const struct workload *workload, const struct schedule *schedule,
                    struct outcome *outcome)
{
    outcome->seed = schedule->seed;
    outcome->made.count = 0;
    outcome->made.cut = false;
    void *context = workload->open(schedule->seed);
    const enum schedule_end end =
        schedule_run(schedule, workload->threads, workload->body, context);
    const char *wrong = end == SCHEDULE_DONE ? workload->close(context) : end_text(end);

    outcome->fingerprint = schedule_fingerprint();
    if (wrong) {
        (void)snprintf(outcome->text, sizeof outcome->text, "%s", wrong);
        child_exit(1);
    }
}

static void run_all(const struct workload *workload, uint64_t first, uint64_t count,
                    const struct schedule_list *prescribed)
{
    struct outcome *outcome = outcome_shared();

    (void)alarm(BATCH_SECONDS);
    for (uint64_t seed = first; seed < first + count; seed++) {
        const struct schedule schedule = {
            .seed = seed, .prescribed = prescribed, .made = &outcome->made};

        run_one(workload, &schedule, outcome);
    }
    child_exit(0);
}

/* In a child process, which may die of it. True if all went well. */
static bool run_apart(const struct workload *workload, uint64_t first, uint64_t count,
                      const struct schedule_list *prescribed, bool quiet)
{
    struct outcome *outcome = outcome_shared();
    int status = 0;

    outcome->text[0] = '\0';
    (void)fflush(NULL);
    const pid_t child = fork();

    if (child == 0) {
        if (quiet) {
            (void)!freopen("/dev/null", "w", stderr);
        }
        run_all(workload, first, count, prescribed);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("fork");
        exit(2);
    }
    if (WIFSIGNALED(status)) {
        (void)snprintf(outcome->text, sizeof outcome->text, "died of signal %d (%s)",
                       WTERMSIG(status), strsignal(WTERMSIG(status)));
    }
    return status == 0;
}

/* ---- shrinking ---- */

/* The list without `count` switches from `at` on. */
static void list_without(struct schedule_list *list, const struct schedule_list *of, uint32_t at,
                         uint32_t count)
{
    list->count = of->count - count;
    memcpy(list->list, of->list, at * sizeof list->list[0]);
    memcpy(list->list + at, of->list + at + count, (of->count - at - count) * sizeof list->list[0]);
}

/* Leaves out as many switches as it can: halves, quarters, ... single ones. */
static void shrink(const struct workload *workload, uint64_t seed, struct schedule_list *list)
{
    struct outcome *outcome = outcome_shared();
    unsigned trials = 0;

    for (uint32_t size = list->count / 2; size > 0; size /= 2) {
        for (uint32_t at = 0; at + size <= list->count && trials < TRIALS_MAX; trials++) {
            list_without(&outcome->prescribed, list, at, size);
            if (run_apart(workload, seed, 1, &outcome->prescribed, true)) {
                at += size;
            } else {
                memcpy(list, &outcome->prescribed, sizeof *list);
            }
        }
    }
}

/* ---- words ---- */

/* Prints the function and the line; false if binutils are not there. */
static bool addr2line(const char *program, uintptr_t offset)
{
    char text[32];
    int status = 1;
    (void)fflush(stdout);
    const pid_t child = fork();

    if (child == 0) {
        (void)snprintf(text, sizeof text, "0x%" PRIxPTR, offset);
        (void)execlp("addr2line", "addr2line", "-s", "-f", "-p", "-e", program, text, NULL);
        _exit(127);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

static void print_place(uintptr_t place)
{
    Dl_info info;

    if (place == 0 || !dladdr((void *)place, &info)) { // NOLINT(performance-no-int-to-ptr)
        printf("its end\n");
    } else if (!addr2line(info.dli_fname, place - 1 - (uintptr_t)info.dli_fbase)) {
        printf("0x%" PRIxPTR "\n", place);
    }
}

static void print_list(const struct schedule_list *list)
{
    for (uint32_t i = 0; i < list->count; i++) {
        const struct schedule_switch *at = &list->list[i];

        printf("    thread %" PRIu32 " gives way to %" PRIu32 " at point %" PRIu64 ", ", at->from,
               at->to, at->point);
        print_place(at->place);
    }
}

static void report(const struct workload *workload)
{
    static struct schedule_list list;
    struct outcome *outcome = outcome_shared();
    const uint64_t seed = outcome->seed;

    printf("FAIL %s, seed %" PRIu64 ": %s\n", workload->name, seed, outcome->text);
    memcpy(&list, &outcome->made, sizeof list);
    memcpy(&outcome->prescribed, &list, sizeof list);
    if (list.cut || run_apart(workload, seed, 1, &outcome->prescribed, true)) {
        printf("    its %" PRIu32 " switches alone do not repeat it: use the seed\n", list.count);
        return;
    }
    shrink(workload, seed, &list);
    printf("    it needs %" PRIu32 " switches:\n", list.count);
    print_list(&list);
}

bool explore(const struct workload *workload, uint64_t first, uint64_t count)
{
    const uint64_t end = first + count;

    for (uint64_t seed = first; seed < end; seed += BATCH) {
        if (!run_apart(workload, seed, end - seed < BATCH ? end - seed : BATCH, NULL, false)) {
            report(workload);
            return false;
        }
    }
    return true;
}

bool explore_one(const struct workload *workload, uint64_t seed, uint64_t *fingerprint_out)
{
    const bool well = run_apart(workload, seed, 1, NULL, false);

    *fingerprint_out = outcome_shared()->fingerprint;
    return well;
}
