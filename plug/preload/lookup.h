/* SPDX-License-Identifier: MIT */
/*
 * The ways to a function of the driver other than linking it: dlsym, dlvsym, cuGetProcAddress, and
 * libraries that were opened with RTLD_DEEPBIND, which find their own libcuda.so.1 first.
 *
 * dlsym, dlvsym and dlopen look at who calls them (RTLD_NEXT, the caller's search path), so the
 * hooks end in a jump to the real ones: the compiler must make tail calls of these (lookup.c is
 * always compiled with optimisation).
 */
#ifndef RUN_LOOKUP_H
#define RUN_LOOKUP_H

#include <stdint.h>

/* What a program gets that asked cuGetProcAddress for `name` and was given `function`. */
void *run_lookup_replace(const char *name, void *function);

/* This library's dlsym, dlvsym or dlopen. */
void *run_lookup_loader_hook(const char *name);

/* Replaces the driver's functions in the tables of objects that were opened with RTLD_DEEPBIND
 * since the last call. */
void run_deepbind_settle(void);
void run_deepbind_note(void);

#endif
