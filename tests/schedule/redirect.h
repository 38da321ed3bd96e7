/* SPDX-License-Identifier: MIT */
/*
 * Included before the sources that start threads or wait with the system's own means: here the
 * scheduler does that (threads.c).
 */
#ifndef TESTS_SCHEDULE_REDIRECT_H
#define TESTS_SCHEDULE_REDIRECT_H

#include "base/os_shared.h"
#include "schedule/threads.h"

#include <pthread.h>
#include <time.h>

#define pthread_create            schedule_thread_create
#define pthread_join              schedule_thread_join
#define pthread_mutex_lock        schedule_mutex_lock
#define pthread_mutex_unlock      schedule_mutex_unlock
#define nanosleep(time, left_out) schedule_nap(time)
#define tn_os_shared_wait         schedule_shared_wait
#define tn_os_shared_wake         schedule_shared_wake

#endif
