/* SPDX-License-Identifier: MIT */
/* Other processes, as the operating system knows them. Thread-safe. */
#ifndef TN_BASE_OS_PROCESS_H
#define TN_BASE_OS_PROCESS_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>

int64_t tn_os_process_id(void);

/* A number that no other process can foresee, where the system has such numbers. */
uint64_t tn_os_random(void);

/* How many threads can run at once, at least 1. */
uint32_t tn_os_processors(void);

/* A duplicate of another process's descriptor, -1 when the system refuses: `*refused_out` then says
 * whether for want of permission. Close it with tn_os_descriptor_close. */
int tn_os_descriptor_take(int64_t process, int descriptor, bool *refused_out) TN_MUST_CHECK;

/* A duplicate of an own descriptor; -1 when there can be no more. */
int tn_os_descriptor_copy(int descriptor) TN_MUST_CHECK;

/* Nothing for -1. */
void tn_os_descriptor_close(int descriptor);

#endif
