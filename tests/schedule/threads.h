/* SPDX-License-Identifier: MIT */
/*
 * What the system offers to threads, on the scheduler. A thread that the code under test starts
 * runs on one of the workload's own threads, which waits for that.
 */
#ifndef TESTS_SCHEDULE_THREADS_H
#define TESTS_SCHEDULE_THREADS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* The body of a thread that is lent: runs what others start, one after the other, until *over. */
void schedule_lend_thread(const bool *over);

/* Fails while the lent thread runs something. */
int schedule_thread_create(pthread_t *thread_out, const pthread_attr_t *how, void *(*start)(void *),
                           void *argument);
int schedule_thread_join(pthread_t thread, void **result_out);

/* Whether the lent thread is running something. */
bool schedule_runs_lent(void);

int schedule_mutex_lock(pthread_mutex_t *mutex);
int schedule_mutex_unlock(pthread_mutex_t *mutex);
int schedule_nap(const struct timespec *time);

/* Of words at the same offset in pages that are mapped more than once. One thread sleeps at a
 * time. */
void schedule_shared_wait(const _Atomic uint32_t *word, uint32_t expected, uint64_t ns);
void schedule_shared_wake(const _Atomic uint32_t *word);

#endif
