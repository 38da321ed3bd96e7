/* SPDX-License-Identifier: MIT */
#include "schedule/threads.h"

#include "schedule/schedule.h"

#include <errno.h>
#include <stddef.h>

enum {
    PAGE_BYTES = 4096
};

#define HERE ((uintptr_t)__builtin_return_address(0))

/* ---- threads ---- */

static struct {
    void *(*start)(void *argument); /* NULL: nothing to run */
    void *argument;
    pthread_t started; /* number of the last one */
    pthread_t ended;
} lent;

void schedule_lend_thread(const bool *over)
{
    while (!*over) {
        if (lent.start) {
            (void)lent.start(lent.argument);
            lent.ended = lent.started;
            lent.start = NULL;
        }
        schedule_yield(HERE);
    }
}

int schedule_thread_create(pthread_t *thread_out, const pthread_attr_t *how, void *(*start)(void *),
                           void *argument)
{
    (void)how;
    schedule_point(true, HERE);
    if (lent.start) {
        return EAGAIN;
    }
    lent.argument = argument;
    lent.start = start;
    *thread_out = ++lent.started;
    return 0;
}

int schedule_thread_join(pthread_t thread, void **result_out)
{
    (void)result_out;
    while (lent.ended < thread) {
        schedule_yield(HERE);
    }
    return 0;
}

bool schedule_runs_lent(void)
{
    return lent.start != NULL;
}

/* ---- waiting ---- */

int schedule_mutex_lock(pthread_mutex_t *mutex)
{
    schedule_point(true, HERE);
    while (pthread_mutex_trylock(mutex) != 0) {
        schedule_yield(HERE);
    }
    return 0;
}

int schedule_mutex_unlock(pthread_mutex_t *mutex)
{
    schedule_point(true, HERE);
    return pthread_mutex_unlock(mutex);
}

int schedule_nap(const struct timespec *time)
{
    (void)time;
    schedule_yield(HERE);
    return 0;
}

/* ---- pages that are mapped more than once ---- */

static _Atomic uint32_t *slept_on;

void schedule_shared_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t ns)
{
    (void)ns;
    schedule_point(true, HERE);
    slept_on = (_Atomic uint32_t *)(uintptr_t)word;
    schedule_sleep(slept_on, expected, HERE);
}

void schedule_shared_wake(const _Atomic uint32_t *word)
{
    schedule_point(true, HERE);
    if (slept_on && (uintptr_t)slept_on % PAGE_BYTES == (uintptr_t)word % PAGE_BYTES) {
        schedule_wake_one(slept_on);
    }
}
