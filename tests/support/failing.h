/* SPDX-License-Identifier: MIT */
/*
 * Functions of the C library and of others that fail when a test wants it: FAILING(...) defines one
 * in the test program, before the library's own, which it calls otherwise. The including file
 * defines _GNU_SOURCE (RTLD_NEXT) and, for functions that fortified headers define, undefines
 * _FORTIFY_SOURCE.
 */
#ifndef TESTS_SUPPORT_FAILING_H
#define TESTS_SUPPORT_FAILING_H

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

static struct {
    const char *name; /* NULL: none fails */
    int skip;         /* calls that still work */
    int count;        /* calls that fail after them */
    int error;        /* errno */
} failing;

/* Of the calls of that name, number `skip` and the next ones, `count` in all, fail with `error`. */
static inline void fail_calls(const char *name, int skip, int count, int error)
{
    failing.name = name;
    failing.skip = skip;
    failing.count = count;
    failing.error = error;
}

/* False unless all calls that were to fail were made. */
static inline bool fail_none(void)
{
    const bool all_failed = failing.count == 0;

    failing.name = NULL;
    return all_failed;
}

static inline bool call_is_failing(const char *name)
{
    if (!failing.name || strcmp(failing.name, name) != 0 || failing.skip-- > 0 ||
        failing.count == 0) {
        return false;
    }
    failing.count--;
    errno = failing.error;
    return true;
}

#define FAILING(type, failed, name, parameters, arguments)                                         \
    type name parameters                                                                           \
    {                                                                                              \
        __typeof__(&name) real;                                                                    \
        void *const found = dlsym(RTLD_NEXT, #name);                                               \
                                                                                                   \
        memcpy(&real, &found, sizeof real);                                                        \
        return call_is_failing(#name) ? (failed) : real arguments;                                 \
    }

/* The same of syscall(wanted, ...), under a name. */
#define FAILING_SYSCALL(wanted, name)                                                              \
    long syscall(long number, ...)                                                                 \
    {                                                                                              \
        __typeof__(&syscall) real;                                                                 \
        void *const found = dlsym(RTLD_NEXT, "syscall");                                           \
        va_list list;                                                                              \
        long a[6];                                                                                 \
                                                                                                   \
        memcpy(&real, &found, sizeof real);                                                        \
        va_start(list, number);                                                                    \
        for (int i = 0; i < 6; i++) {                                                              \
            a[i] = va_arg(list, long);                                                             \
        }                                                                                          \
        va_end(list);                                                                              \
        return number == (wanted) && call_is_failing(name)                                         \
                   ? -1                                                                            \
                   : real(number, a[0], a[1], a[2], a[3], a[4], a[5]);                             \
    }

#endif
