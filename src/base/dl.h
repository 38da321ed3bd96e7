/* SPDX-License-Identifier: MIT */
/* Shared libraries opened at run time. Thread-safe. */
#ifndef TN_BASE_DL_H
#define TN_BASE_DL_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

/* Opens a library by its path, or by its name on the system's search path. It is never closed,
 * because drivers start threads that outlive their last user. NULL when it cannot be opened; then
 * `why` holds the system's reason, truncated to `size` bytes. */
void *tn_dl_open(const char *path, char *why, size_t size) TN_MUST_CHECK;

/* Stores the function of that name in *function_out, a pointer to a function pointer; false,
 * storing nothing, when the library has none. */
bool tn_dl_find(void *library, const char *name, void *function_out) TN_MUST_CHECK;

#endif
