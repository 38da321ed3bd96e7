/* SPDX-License-Identifier: MIT */
/* Where the calling thread's stack is. */
#ifndef TN_BASE_OS_STACK_H
#define TN_BASE_OS_STACK_H

#include <stdint.h>

struct tn_os_stack {
    uintptr_t low; /* lowest address that it may grow to */
    uintptr_t end; /* first address behind it */
};

/* Everything between the address of a live local variable and `end` can be read. {0, 0} when the
 * system does not say. Asks the system once a thread: about a microsecond, for a program's first
 * thread a hundred; may allocate by malloc. Takes a few loads from then on. */
struct tn_os_stack tn_os_stack_bounds(void);

#endif
