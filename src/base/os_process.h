/* SPDX-License-Identifier: MIT */
/* Access to other processes. Thread-safe. */
#ifndef TN_BASE_OS_PROCESS_H
#define TN_BASE_OS_PROCESS_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>

int64_t tn_os_process_id(void);

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
