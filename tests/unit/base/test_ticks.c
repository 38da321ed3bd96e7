/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include <time.h>

#include "base/ticks.h"

static int64_t epoch_us(void)
{
    struct timespec now;

    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void ticks_go_forward(bool counted)
{
    uint64_t last = tn_ticks_now(counted);

    for (int i = 0; i < 100000; i++) {
        const uint64_t now = tn_ticks_now(counted);

        assert_true(now >= last);
        last = now;
    }
}

static void both_clocks_go_forward(void **state)
{
    (void)state;
    ticks_go_forward(false);
    ticks_go_forward(tn_ticks_are_counted());
}

/* A tick between two readings of the wall clock becomes a time between them, give or take what
 * rounding and an adjustment of the wall clock do. */
static void ticks_become_time(bool counted)
{
    const struct tn_tick_origin origin = tn_tick_origin(counted);
    const struct timespec pause = {.tv_nsec = 20000000};
    const int64_t before = epoch_us();
    const uint64_t ticks = tn_ticks_now(counted);
    const int64_t after = epoch_us();

    assert_int_equal(nanosleep(&pause, NULL), 0);
    const struct tn_tick_origin later = tn_tick_origin(counted);
    const double length = tn_tick_length(&origin, &later);
    const int64_t at = tn_tick_time_us(&origin, length, ticks);

    assert_true(length > 0.0);
    assert_true(at >= before - 5000);
    assert_true(at <= after + 5000);
    assert_true(tn_tick_time_us(&origin, length, later.ticks) >= at + 15000);
}

static void ticks_are_times_since_1970(void **state)
{
    (void)state;
    ticks_become_time(false);
    ticks_become_time(tn_ticks_are_counted());
}

static void no_time_between_has_a_length(void **state)
{
    const struct tn_tick_origin origin = {
        .ticks = 7, .clock_ns = 7, .epoch_ns = 5000, .counted = true};

    (void)state;
    assert_true(tn_tick_length(&origin, &origin) > 0.0);
    assert_int_equal(tn_tick_time_us(&origin, 1.0, 7), 5);
    assert_int_equal(tn_tick_time_us(&origin, 2.0, 1007), 7);
    assert_int_equal(tn_tick_time_us(&origin, 1.0, (uint64_t)-2993), 2); /* before the origin */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_clocks_go_forward),
        cmocka_unit_test(ticks_are_times_since_1970),
        cmocka_unit_test(no_time_between_has_a_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
