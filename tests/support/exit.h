/* SPDX-License-Identifier: MIT */
/* The end of a child process. */
#ifndef TESTS_SUPPORT_EXIT_H
#define TESTS_SUPPORT_EXIT_H

#include <unistd.h>

/* Ends a child at once. Its counts of what it reached would be lost, were they not written here. */
static inline _Noreturn void child_exit(int code)
{
#ifdef TN_COVERAGE
    extern int __llvm_profile_write_file(void);

    (void)__llvm_profile_write_file();
#endif
    _exit(code);
}

/* The same for a child that an assertion stops: for signal(SIGABRT, ...). */
static inline void child_count(int number)
{
    (void)number;
#ifdef TN_COVERAGE
    extern int __llvm_profile_write_file(void);

    (void)__llvm_profile_write_file();
#endif
}

#endif
