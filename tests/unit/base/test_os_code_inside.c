/* SPDX-License-Identifier: MIT */
/* Whoever looks for code while the table is being made anew, with a clock of the test's. */
#define _GNU_SOURCE /* as the source below */
#include "support/test.h"

#include <stdint.h>
#include <stdlib.h>

static uint64_t test_time = 1;
static uint64_t step;

static uint64_t clock_of_the_test(void)
{
    test_time += step;
    return test_time;
}

/* The source once more, for its static state. */
#define tn_clock_now_ns    clock_of_the_test
#define tn_os_code_find    find_here
#define tn_os_code_own     own_here
#define tn_os_code_unloads unloads_here
#include "base/os_code_linux.c" /* NOLINT(bugprone-suspicious-include) */

static uintptr_t known(void)
{
    return (uintptr_t)abs;
}

/* As a thread leaves it that is stopped while it stores the table. */
static void stop_in_the_middle(int process)
{
    atomic_fetch_or(&version, 1);
    atomic_store(&builder, process);
}

static void go_on(void)
{
    atomic_fetch_add(&version, 1);
    atomic_store(&builder, 0);
}

/* A signal's handler that interrupted the builder would wait for itself. */
static void nobody_waits_for_ever(void **state)
{
    struct tn_code_range range;

    (void)state;
    step = 0;
    assert_true(find_here(known(), &range));
    stop_in_the_middle((int)getpid());
    step = WAIT_MAX_NS / 4;
    const uint64_t begin = test_time;

    assert_false(find_here(known(), &range));
    assert_in_range(test_time - begin, 3 * WAIT_MAX_NS,
                    6 * WAIT_MAX_NS); /* search, rebuild, search */
    go_on();
    assert_true(find_here(known(), &range));
}

/* A process that was forked in the middle of it has no such thread. */
static void a_child_takes_over_at_once(void **state)
{
    struct tn_code_range range;

    (void)state;
    step = 0;
    stop_in_the_middle((int)getppid());
    test_time += LOOK_AGAIN_NS;
    const uint64_t begin = test_time;

    assert_true(find_here(known(), &range));
    assert_int_equal(test_time, begin);
    assert_int_equal(atomic_load(&builder), 0);
    assert_int_equal(atomic_load(&version) % 2, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_waits_for_ever),
        cmocka_unit_test(a_child_takes_over_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
