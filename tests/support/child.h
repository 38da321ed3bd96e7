/* SPDX-License-Identifier: MIT */
/* Running a part of a test in another process. Include after support/test.h. */
#ifndef TESTS_SUPPORT_CHILD_H
#define TESTS_SUPPORT_CHILD_H

#include "support/exit.h"
#include "support/test.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* For functions that run in a child: says what does not hold and ends with failure. */
#define CHILD_REQUIRE(condition)                                                                   \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)fprintf(stderr, "%s:%d: in the child: %s\n", __FILE__, __LINE__, #condition);    \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (false)

/* Runs the function in a child and fails the test if anything it requires does not hold. */
static inline void child_run(void (*function)(void *context), void *context)
{
    int status = -1;

    (void)fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        function(context);
        child_exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("the child ended with status %#x", (unsigned)status);
    }
}

#endif
