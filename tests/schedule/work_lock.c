/* SPDX-License-Identifier: MIT */
/* Mutual exclusion of both locks, and that nobody sleeps for ever. */
#include "base/biased_lock.h"
#include "base/lock.h"
#include "schedule/workload.h"
#include "support/draw.h"

#include <stdlib.h>

enum {
    ROUNDS = 12,
    NEEDED = 2 /* acquisitions that bias the lock: more often than in earnest */
};

struct counted {
    struct tn_lock lock;
    struct tn_biased_lock biased;
    uint64_t seed;
    uint32_t holders;
    uint64_t entries;
    const char *wrong;
};

static void *locks_open(uint64_t seed)
{
    struct counted *counted = calloc(1, sizeof *counted);

    tn_lock_init(&counted->lock, TN_LOCK_ALLOCATOR);
    tn_biased_lock_init(&counted->biased, TN_LOCK_ALLOCATOR);
    counted->biased.needed = NEEDED;
    counted->seed = seed;
    return counted;
}

static const char *locks_close(void *context)
{
    struct counted *counted = context;
    const char *wrong = counted->wrong;

    tn_lock_fini(&counted->lock);
    tn_biased_lock_fini(&counted->biased);
    free(counted);
    return wrong;
}

/* With the lock: others may try to come in. */
static void critical(struct counted *counted)
{
    if (counted->holders++ != 0) {
        counted->wrong = "two threads hold the lock";
    }
    schedule_point(true, (uintptr_t)__builtin_return_address(0));
    counted->holders--;
    counted->entries++;
}

static void lock_body(void *context, unsigned thread)
{
    struct counted *counted = context;

    (void)thread;
    for (int i = 0; i < ROUNDS; i++) {
        tn_lock_acquire(&counted->lock);
        critical(counted);
        tn_lock_release(&counted->lock);
    }
}

static bool biased_enter(struct counted *counted, uint64_t how)
{
    switch (how) {
    case 0:
        return tn_biased_lock_visit(&counted->biased);
    case 1:
        if (!tn_biased_lock_try(&counted->biased)) {
            return false;
        }
        tn_lock_taken(&counted->biased, counted->biased.rank);
        return true;
    default:
        tn_biased_lock_acquire(&counted->biased);
        return true;
    }
}

static void biased_body(void *context, unsigned thread)
{
    struct counted *counted = context;
    uint64_t random = counted->seed * SCHEDULE_THREADS_MAX + thread;

    for (int i = 0; i < ROUNDS; i++) {
        if (biased_enter(counted, draw(&random) % 8)) {
            critical(counted);
            tn_biased_lock_release(&counted->biased);
        }
    }
}

const struct workload workload_lock = {
    .name = "lock", .threads = 4, .open = locks_open, .body = lock_body, .close = locks_close};
const struct workload workload_biased_lock = {.name = "biased_lock",
                                              .threads = 4,
                                              .open = locks_open,
                                              .body = biased_body,
                                              .close = locks_close};
