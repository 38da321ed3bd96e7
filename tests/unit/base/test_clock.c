/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <time.h>

#include "base/clock.h"

static void time_never_goes_back(void **state)
{
    uint64_t last = tn_clock_now_ns();

    (void)state;
    for (int i = 0; i < 100000; i++) {
        const uint64_t now = tn_clock_now_ns();

        assert_true(now >= last);
        last = now;
    }
}

static void the_unit_is_nanoseconds(void **state)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    const uint64_t begin = tn_clock_now_ns();

    (void)state;
    assert_int_equal(nanosleep(&pause, NULL), 0);
    const uint64_t took = tn_clock_now_ns() - begin;

    assert_true(took >= 5000000);
    assert_true(took < (uint64_t)60 * 1000000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_never_goes_back),
        cmocka_unit_test(the_unit_is_nanoseconds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
