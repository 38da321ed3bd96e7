/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/assertion.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef TN_COVERAGE
#define IS_CONSTANT 1
#else
#define IS_CONSTANT 0
#endif

enum {
    ENDED_WRONG = 1,
    ENDED_RIGHT = 2
};

static int asked;

/* Conditions without effects have none for the program; the test counts here who evaluates them. */
static bool ask(bool answer)
{
    asked++;
    return answer;
}

static void what_holds_goes_through(void **state)
{
    (void)state;
    asked = 0;
    assert_true(tn_always(ask(true)));
    assert_false(tn_never(ask(false)));
    assert_int_equal(asked, IS_CONSTANT ? 0 : 2);
}

static void always_broken(void)
{
    _exit(tn_always(ask(false)) ? ENDED_WRONG : ENDED_RIGHT);
}

static void never_broken(void)
{
    _exit(tn_never(ask(true)) ? ENDED_RIGHT : ENDED_WRONG);
}

/* What a child says on standard error, and how it ends. */
static int child_end(void (*run)(void), char *said, size_t size)
{
    int pipe_ends[2];
    int status;

    assert_int_equal(pipe(pipe_ends), 0);
    (void)fflush(NULL);
    const pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(pipe_ends[1], STDERR_FILENO);
        run();
    }
    assert_int_equal(close(pipe_ends[1]), 0);
    const ssize_t got = read(pipe_ends[0], said, size - 1);

    assert_true(got >= 0);
    said[got] = '\0';
    assert_int_equal(close(pipe_ends[0]), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

/* A checked build stops and names the condition; others take the other way. */
static void broken_ends(void (*run)(void), const char *named)
{
    char said[512];
    const int status = child_end(run, said, sizeof said);

    if (IS_CONSTANT) {
        assert_int_equal(WEXITSTATUS(status), ENDED_WRONG);
    } else if (TN_CHECKS_FAST) {
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        assert_non_null(strstr(said, named));
        assert_non_null(strstr(said, "test_assertion.c"));
    } else {
        assert_int_equal(WEXITSTATUS(status), ENDED_RIGHT);
    }
}

static void a_mark_that_is_wrong_is_found(void **state)
{
    (void)state;
    broken_ends(always_broken, "always: ask(false)");
    broken_ends(never_broken, "never: ask(true)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_holds_goes_through),
        cmocka_unit_test(a_mark_that_is_wrong_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
