/* SPDX-License-Identifier: MIT */
/*
 * Functions, files and lines of an address, from the debug information of the program's own
 * modules.
 *
 * debug_info_libdw.c reads it with elfutils' libdw, which it loads at run time; a build without
 * elfutils' headers has debug_info_none.c, which knows nothing. Not thread-safe: its owner locks.
 * Cost: milliseconds for the first address of a module, then microseconds. libdw allocates with
 * malloc.
 */
#ifndef TN_HISTORY_DEBUG_INFO_H
#define TN_HISTORY_DEBUG_INFO_H

#include "base/attr.h"

#include <stdbool.h>
#include <stdint.h>

struct tn_debug_info;

/* False when host memory runs out. NULL when there is no debug information to be had: the functions
 * below accept that. */
bool tn_debug_info_open(struct tn_debug_info **info_out) TN_MUST_CHECK;
void tn_debug_info_close(struct tn_debug_info *info);

/* Modules may have been loaded: the next address refreshes the module list. */
void tn_debug_info_expect_modules(struct tn_debug_info *info);

/* One frame: `name` as linked, `file`, each NULL when unknown, and `line`, 0 when unknown; borrowed
 * during the call. False stops. */
typedef bool (*tn_debug_visitor)(void *context, const char *name, const char *file, uint64_t line);

/* Visits the function at the address and those it is inlined into, innermost first; nothing outside
 * of all modules. False when the visitor stopped. */
bool tn_debug_info_visit(struct tn_debug_info *info, uint64_t address, tn_debug_visitor visit,
                         void *context) TN_MUST_CHECK;

#endif
