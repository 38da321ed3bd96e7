/* SPDX-License-Identifier: MIT */
/*
 * A handler in the child counts forks, because getpid would be a system call each time. The mutex
 * is held across the fork, so that the child gets a consistent list.
 */
#include "base/os_fork.h"

#include "base/assertion.h"
#include "base/errinfo.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

static atomic_uint_fast32_t forks;
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static bool watching;
static struct tn_fork_watch *watches;

void tn_fork_hold(void)
{
    (void)pthread_mutex_lock(&watch_lock);
}

void tn_fork_release(void)
{
    tn_assert(pthread_mutex_trylock(&watch_lock) == EBUSY);
    (void)pthread_mutex_unlock(&watch_lock);
}

static void child_begin(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
    for (struct tn_fork_watch *watch = watches; watch; watch = watch->next) {
        watch->passed = true;
        if (watch->forked) {
            watch->forked(watch);
        }
    }
    tn_fork_release();
}

bool tn_os_forks_watch(void)
{
    tn_fork_hold();
    watching = watching || pthread_atfork(tn_fork_hold, tn_fork_release, child_begin) == 0;
    const bool done = watching;

    tn_fork_release();
    return done;
}

uint32_t tn_os_forks(void)
{
    return (uint32_t)atomic_load_explicit(&forks, memory_order_relaxed);
}

void tn_fork_watch_init(struct tn_fork_watch *watch, void (*forked)(struct tn_fork_watch *watch))
{
    tn_fork_hold();
    *watch = (struct tn_fork_watch){.next = watches, .link = &watches, .forked = forked};
    if (watches) {
        watches->link = &watch->next;
    }
    watches = watch;
    tn_fork_release();
}

void tn_fork_watch_fini(struct tn_fork_watch *watch)
{
    tn_fork_hold();
    if (watch->link) {
        *watch->link = watch->next;
    }
    if (watch->next) {
        watch->next->link = watch->link;
    }
    *watch = (struct tn_fork_watch){.passed = watch->passed};
    tn_fork_release();
}

enum tarn_status tn_fork_refuse(struct tarn_error *error, const char *what)
{
    return tn_fail(
        error, TARN_ERR_STATE,
        "%s was created before this process was forked, and a child cannot use it: create "
        "another one in the child, or start the child as a new program",
        what);
}
