/* SPDX-License-Identifier: MIT */
#ifndef TN_BASE_CLOCK_H
#define TN_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic time in nanoseconds, from an arbitrary origin. */
uint64_t tn_clock_now_ns(void);

#endif
