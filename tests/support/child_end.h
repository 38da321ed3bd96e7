/* SPDX-License-Identifier: MIT */
/* The end of a child with all that is called at exit. For one source of a program. */
#ifndef TESTS_SUPPORT_CHILD_END_H
#define TESTS_SUPPORT_CHILD_END_H

#include <stdbool.h>
#include <stdlib.h>

static bool child_is_ending;

#ifdef __SANITIZE_ADDRESS__
/* Whether leaks are not looked for: in a child that would wait for ever for a lock of the
 * sanitizer that another thread had during the fork. */
__attribute__((visibility("default"))) int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return child_is_ending;
}
#endif

static inline _Noreturn void child_end(void)
{
    child_is_ending = true;
    exit(0);
}

#endif
