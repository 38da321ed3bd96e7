/* SPDX-License-Identifier: MIT */
/* Access to other processes. Thread-safe. */
#ifndef TN_BASE_OS_PROCESS_H
#define TN_BASE_OS_PROCESS_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int64_t tn_os_process_id(void);

/* When the process started, in the system's ticks since it booted: with its id that names a process
 * for good. False when there is no such process. */
bool tn_os_process_start(int64_t process, uint64_t *start_out) TN_MUST_CHECK;

/* Name of this process's program, cut to fit. */
void tn_os_process_name(char *name_out, size_t size);

/* Names the calling thread, for debuggers and top; at most 15 characters. */
void tn_os_thread_name(const char *name);

/* A random number, unpredictable for other processes where the system provides that. */
uint64_t tn_os_random(void);

/* Number of processors, at least 1. */
uint32_t tn_os_processors(void);

/* A duplicate of another process's descriptor, -1 on failure: `*refused_out` then says whether
 * permission was missing. Close it with tn_os_descriptor_close. */
int tn_os_descriptor_take(int64_t process, int descriptor, bool *refused_out) TN_MUST_CHECK;

/* A duplicate of an own descriptor; -1 at the descriptor limit. */
int tn_os_descriptor_copy(int descriptor) TN_MUST_CHECK;

/* Does nothing for -1. */
void tn_os_descriptor_close(int descriptor);

#endif
