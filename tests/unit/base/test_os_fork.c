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

static struct tn_fork_watch watches[3];
static uint32_t told;

static void tell(struct tn_fork_watch *watch)
{
    told += watch->passed ? (uint32_t)1 << (watch - watches) : 0;
}

static int told_in_child(uint32_t before)
{
    const bool right =
        tn_fork_passed(&watches[0]) && !tn_fork_passed(&watches[1]) && tn_fork_passed(&watches[2]);
    struct tn_fork_watch own;

    (void)before;
    tn_fork_watch_init(&own, tell); /* the list is whole, and its lock free */
    tn_fork_watch_fini(&watches[0]);
    tn_fork_watch_fini(&own);
    return right ? (int)told : -1;
}

static void watches_are_marked_in_children(void **state)
{
    (void)state;
    assert_true(tn_os_forks_watch());
    for (size_t i = 0; i < 3; i++) {
        tn_fork_watch_init(&watches[i], i == 2 ? NULL : tell);
    }
    tn_fork_watch_fini(&watches[1]);
    tn_fork_watch_fini(&watches[1]); /* does nothing */
    assert_int_equal(in_child(told_in_child, 0), 1);
    assert_false(tn_fork_passed(&watches[0]));
    tn_fork_watch_fini(&watches[2]);
    tn_fork_watch_fini(&watches[0]);
    assert_int_equal(in_child(told_in_child, 0), 255); /* nobody is told any more: -1 */
}

static void refusals_say_what_to_do(void **state)
{
    struct tarn_error error;

    (void)state;
    assert_int_equal(tn_fork_refuse(&error, "the thing"), TARN_ERR_STATE);
    assert_string_equal(
        error.text, "the thing was created before this process was forked, and a child cannot use "
                    "it: create another one in the child, or start the child as a new program");
    assert_int_equal(tn_fork_refuse(NULL, "the thing"), TARN_ERR_STATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_fork_counts_once),
                                       cmocka_unit_test(watches_are_marked_in_children),
                                       cmocka_unit_test(refusals_say_what_to_do)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
