/* SPDX-License-Identifier: MIT */
/*
 * A memory barrier that one thread executes on behalf of all threads of the process (Linux:
 * membarrier). It costs the caller microseconds and the other threads nothing.
 */
#ifndef TN_BASE_OS_BARRIER_H
#define TN_BASE_OS_BARRIER_H

#include <stdbool.h>

/* Whether the system has such a barrier; queried once. Thread-safe. */
bool tn_os_barrier_available(void);

/* Every running thread of the process passes a full barrier between call and return. Call only if
 * available. */
void tn_os_barrier(void);

#endif
