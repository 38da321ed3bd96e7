/* SPDX-License-Identifier: MIT */
/*
 * A memory barrier that one thread executes for all threads of the process, so that others can do
 * without (Linux: membarrier). Dear for the caller, microseconds; free for everybody else.
 */
#ifndef TN_BASE_OS_BARRIER_H
#define TN_BASE_OS_BARRIER_H

#include <stdbool.h>

/* Whether the system has such a barrier; asked once. Thread-safe. */
bool tn_os_barrier_available(void);

/* Every running thread of the process has passed a full barrier between call and return. Only where
 * it is available. */
void tn_os_barrier(void);

#endif
