/* SPDX-License-Identifier: MIT */
/*
 * Runs threads one at a time, in an order that a seed decides or a list of switches prescribes.
 * A schedule is repeatable: the same seed and bodies give the same switches.
 */
#ifndef TESTS_SCHEDULE_SCHEDULE_H
#define TESTS_SCHEDULE_SCHEDULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SCHEDULE_THREADS_MAX = 8,
    SCHEDULE_SWITCHES_MAX = 1 << 16
};

/* At its `point`-th point, the thread `from` is interrupted for `to`. */
struct schedule_switch {
    uint64_t point;
    uint32_t from;
    uint32_t to;
    uintptr_t place; /* address of the code that was about to go on; not part of the decision */
};

/* May lie in memory that outlives the process. */
struct schedule_list {
    uint32_t count;
    bool cut; /* there were more than fit */
    struct schedule_switch list[SCHEDULE_SWITCHES_MAX];
};

struct schedule {
    uint64_t seed;                          /* decides, if `prescribed` is NULL */
    const struct schedule_list *prescribed; /* these switches, and those that are forced */
    struct schedule_list *made;             /* the switches that happened, or NULL */
};

/* How a schedule ended. */
enum schedule_end {
    SCHEDULE_DONE,
    SCHEDULE_DEADLOCK, /* all threads that are left sleep */
    SCHEDULE_LIVELOCK  /* none made progress */
};

typedef void schedule_body(void *context, unsigned thread);

/* Runs the body in `threads` threads. When it does not end well, the threads are stuck: the process
 * should report and exit. */
enum schedule_end schedule_run(const struct schedule *schedule, unsigned threads,
                               schedule_body *body, void *context);

/* Of the switches that happened: equal for equal schedules. */
uint64_t schedule_fingerprint(void);

/* ---- for the code that runs in such threads; nothing elsewhere ---- */

/* Another thread may go on here. */
void schedule_point(bool is_atomic, uintptr_t place);

/* The thread can do nothing useful before another has: each other one goes first. */
void schedule_yield(uintptr_t place);

/* Sleeps until the word is woken, unless it has changed already. */
void schedule_sleep(_Atomic uint32_t *word, uint32_t expected, uintptr_t place);
void schedule_wake_one(_Atomic uint32_t *word);

#endif
