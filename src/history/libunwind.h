/* SPDX-License-Identifier: MIT */
/*
 * libunwind's unw_backtrace, loaded at run time where it is installed: return addresses without
 * frame pointers, at 5 ns per frame, because it caches for each thread how the frame of each call
 * site is laid out. The compiler's unwinder reads the tables again each time, 120 ns.
 *
 * The cache is never invalidated, and others in the process may have filled it. So it can be wrong
 * once code has been unloaded, because other code may be loaded at the same addresses: the library
 * is used only while the process has not unloaded a module. Thread-safe.
 */
#ifndef TN_HISTORY_LIBUNWIND_H
#define TN_HISTORY_LIBUNWIND_H

/* Writes at most `max` return addresses of the calling thread, innermost first: the first is in the
 * function that calls it. Returns their number, or less than 0. */
typedef int tn_libunwind_trace(void **addresses, int max);

/* Looks for the library, once. Opens files: not on the way of an allocation. */
void tn_libunwind_load(void);

/* NULL: it is not installed or not loaded, or its cache may be wrong. Ask each time. */
tn_libunwind_trace *tn_libunwind_get(void);

#endif
