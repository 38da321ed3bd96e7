/* SPDX-License-Identifier: MIT */
/*
 * Assertions catch our own bugs, not those of callers or files. Both kinds are always compiled,
 * guarded by a constant, so that they cannot rot:
 *   tn_assert       constant time; on in the debug, check and sanitizer builds
 *   tn_assert_slow  may walk whole structures; on in the check build
 * The failure path allocates nothing.
 */
#ifndef TN_BASE_ASSERTION_H
#define TN_BASE_ASSERTION_H

#include "base/attr.h"

#ifndef TN_CHECK_LEVEL
#define TN_CHECK_LEVEL 0
#endif

enum {
    TN_CHECKS_FAST = TN_CHECK_LEVEL >= 1,
    TN_CHECKS_SLOW = TN_CHECK_LEVEL >= 2
};

TN_NORETURN TN_COLD void tn_assert_failed(const char *what, const char *file, int line);

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

#endif
