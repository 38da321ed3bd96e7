/* SPDX-License-Identifier: MIT */
/*
 * Assertions catch our own bugs, not those of callers or files. Both kinds are always compiled,
 * guarded by a constant, so that they cannot rot:
 *   tn_assert       constant time; on in the debug, check and sanitizer builds
 *   tn_assert_slow  may walk whole structures; on in the check build
 * The failure path allocates nothing.
 *
 * Two more mark conditions that can only have one value, where the program should go on safely if
 * it has the other one after all (SQLite's ALWAYS and NEVER):
 *   if (tn_never(x))   x is false: a second line of defence, which no test can reach
 *   if (tn_always(x))  x is true
 * What they do depends on the build:
 *   checked    the other value is a failed assertion, so the mark is itself tested
 *   coverage   a constant: the branch that cannot be taken is not there to be counted
 *   release    the plain condition, so that the defence works
 *   tn_no_case();   below the cases of a switch that do not occur; what follows is the defence
 * Their argument has no effects. Not for what hostile input, a failing call or lack of memory can
 * bring about: that is reachable, and wants a test.
 *
 * Builds that measure coverage (TN_COVERAGE) have no assertions: each would be a branch that is
 * never taken.
 */
#ifndef TN_BASE_ASSERTION_H
#define TN_BASE_ASSERTION_H

#include "base/attr.h"

#include <stdbool.h>

#ifndef TN_CHECK_LEVEL
#define TN_CHECK_LEVEL 0
#endif

enum {
    TN_CHECKS_FAST = TN_CHECK_LEVEL >= 1,
    TN_CHECKS_SLOW = TN_CHECK_LEVEL >= 2
};

TN_NORETURN TN_COLD void tn_assert_failed(const char *what, const char *file, int line);

#ifdef TN_COVERAGE
#define tn_assert(x)      ((void)0)
#define tn_assert_slow(x) ((void)0)
#define tn_always(x)      1
#define tn_never(x)       0
#define tn_no_case()      ((void)0) /* the cases above it are not counted (coverage_branches.py) */
#else
#define tn_assert(x)                                                                               \
    do {                                                                                           \
        if (TN_CHECKS_FAST && tn_unlikely(!(x))) {                                                 \
            tn_assert_failed(#x, __FILE__, __LINE__);                                              \
        }                                                                                          \
    } while (0)

#define tn_assert_slow(x)                                                                          \
    do {                                                                                           \
        if (TN_CHECKS_SLOW && tn_unlikely(!(x))) {                                                 \
            tn_assert_failed(#x, __FILE__, __LINE__);                                              \
        }                                                                                          \
    } while (0)

#define tn_always(x) (tn_likely(x) || tn_unexpected("always: " #x, __FILE__, __LINE__))
#define tn_never(x)  (tn_unlikely(x) && !tn_unexpected("never: " #x, __FILE__, __LINE__))

#define tn_no_case()                                                                               \
    do {                                                                                           \
        if (TN_CHECKS_FAST) {                                                                      \
            tn_assert_failed("a case that does not occur", __FILE__, __LINE__);                    \
        }                                                                                          \
    } while (0)

/* The value that a condition never has: false, or in a checked build a failed assertion. */
static inline bool tn_unexpected(const char *what, const char *file, int line)
{
    if (TN_CHECKS_FAST) {
        tn_assert_failed(what, file, line);
    }
    return false;
}
#endif

#endif
