/* SPDX-License-Identifier: MIT */
#include "report/spread.h"
#include "support/test.h"

static bool is_near(double number, double expected)
{
    return number > expected - 1e-9 && number < expected + 1e-9;
}

static struct tn_spread spread(double a, double b, double c, double d, double e)
{
    double numbers[] = {a, b, c, d, e};

    return tn_spread_of(numbers, 5);
}

/* Of 10 to 18 the median is 14, the distances 4, 2, 0, 2 and 4, and the median one 2. */
static void distances_are_in_deviations(void **state)
{
    const struct tn_spread even = spread(10, 18, 14, 16, 12);

    (void)state;
    assert_true(even.median == 14);
    assert_true(is_near(even.deviation, 2 * 1.4826));
    assert_true(tn_spread_distance(&even, 14) == 0);
    assert_true(is_near(tn_spread_distance(&even, 14 + even.deviation), 1));
    assert_true(is_near(tn_spread_distance(&even, 14 - even.deviation), 1));
    assert_false(tn_spread_has_outlier(&even, 14 + 3.4 * even.deviation));
    assert_true(tn_spread_has_outlier(&even, 14 + 3.6 * even.deviation));
    assert_true(tn_spread_has_outlier(&even, 14 - 3.6 * even.deviation));
}

static void within_one_percent_nothing_stands_out(void **state)
{
    const struct tn_spread equal = spread(1000, 1000, 1000, 1000, 1009);

    (void)state;
    assert_true(is_near(tn_spread_distance(&equal, 1009), 999.9));
    assert_false(tn_spread_has_outlier(&equal, 1009));
    assert_true(tn_spread_has_outlier(&equal, 1011));
}

static void two_numbers_have_no_outlier(void **state)
{
    double numbers[] = {1, 1000};
    const struct tn_spread two = tn_spread_of(numbers, 2);

    (void)state;
    assert_false(tn_spread_has_outlier(&two, 1000000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distances_are_in_deviations),
        cmocka_unit_test(within_one_percent_nothing_stands_out),
        cmocka_unit_test(two_numbers_have_no_outlier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
