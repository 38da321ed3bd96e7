/* SPDX-License-Identifier: MIT */
/* A handler in the child counts: asking for the process number would be a system call each time. */
#include "base/os_fork.h"

#include <pthread.h>
#include <stdatomic.h>

static atomic_uint_fast32_t forks;
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER; /* guards `watching` */
static bool watching;

static void count_fork(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

bool tn_os_forks_watch(void)
{
    (void)pthread_mutex_lock(&watch_lock);
    watching = watching || pthread_atfork(NULL, NULL, count_fork) == 0;
    const bool done = watching;

    (void)pthread_mutex_unlock(&watch_lock);
    return done;
}

uint32_t tn_os_forks(void)
{
    return (uint32_t)atomic_load_explicit(&forks, memory_order_relaxed);
}
