/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/os_fork.h"

#include <sys/wait.h>
#include <unistd.h>

/* Exit status of a child that runs `body`. */
static int in_child(int (*body)(uint32_t before), uint32_t before)
{
    const pid_t child = fork();
    int status = 0;

    assert_true(child >= 0);
    if (child == 0) {
        _exit(body(before));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int count_of_child(uint32_t before)
{
    return (int)(tn_os_forks() - before);
}

static int count_of_grandchild(uint32_t before)
{
    return in_child(count_of_child, before);
}

static void each_fork_counts_once(void **state)
{
    (void)state;
    assert_true(tn_os_forks_watch());
    assert_true(tn_os_forks_watch());
    const uint32_t before = tn_os_forks();

    assert_int_equal(in_child(count_of_child, before), 1);
    assert_int_equal(in_child(count_of_grandchild, before), 2);
    assert_int_equal(tn_os_forks(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_fork_counts_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
