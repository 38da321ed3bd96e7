/* SPDX-License-Identifier: MIT */
/*
 * The text of a thread's last device failure. All devices share it, because static thread-local
 * storage is scarce in a library that is loaded late.
 */
#ifndef TN_DEVICE_LAST_ERROR_H
#define TN_DEVICE_LAST_ERROR_H

#include "base/attr.h"

#include <stdarg.h>
#include <stdint.h>

/* An id for a new device, unique within the process. */
uint64_t tn_last_error_new_device(void);

/* Sets this thread's text, truncated to 255 bytes. */
void tn_last_error_set(uint64_t device, const char *format, va_list args) TN_PRINTF(2, 0);

/* The text, "" when this thread's last failure was on another device. Borrowed until the thread's
 * next failure. */
const char *tn_last_error_get(uint64_t device);

#endif
