/* SPDX-License-Identifier: MIT */
/* Shared libraries opened at run time. Thread-safe. */
#ifndef TN_BASE_DL_H
#define TN_BASE_DL_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

/* Opens a library by its path, or by its name along the system's search path. It stays in the
 * process for good, so there is no closing: drivers start threads that outlive their last user.
 * NULL when it cannot be opened; then the system's reason is in `why`, cut off at `size` bytes. */
void *tn_dl_open(const char *path, char *why, size_t size) TN_MUST_CHECK;

/* Stores the function of that name in *function_out, a pointer to a function pointer; false, and
 * nothing stored, when the library has none. */
bool tn_dl_find(void *library, const char *name, void *function_out) TN_MUST_CHECK;

#endif
