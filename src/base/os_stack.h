/* SPDX-License-Identifier: MIT */
/* Bounds of the calling thread's stack. */
#ifndef TN_BASE_OS_STACK_H
#define TN_BASE_OS_STACK_H

#include <stdint.h>

struct tn_os_stack {
    uintptr_t low; /* lowest address that it may use */
    uintptr_t end; /* first address after it */
};

/* Everything between the address of a live local variable and `end` is readable. {0, 0} if unknown.
 * Asks the system once per thread, which takes about a microsecond, or a hundred for the main
 * thread, and may call malloc; later calls take a few loads. */
struct tn_os_stack tn_os_stack_bounds(void);

#endif
