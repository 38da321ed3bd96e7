/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/decimal.h"
#include "tarn/text.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

static void whole_numbers_end_where_the_digits_end(void **state)
{
    uint64_t value = 7;

    (void)state;
    assert_int_equal(tn_whole_parse("40MB", &value), TN_DECIMAL_OK);
    assert_int_equal(value, 40);
    assert_int_equal(tn_whole_parse("+007", &value), TN_DECIMAL_OK);
    assert_int_equal(value, 7);
    assert_int_equal(tn_whole_parse("-0", &value), TN_DECIMAL_OK);
    assert_int_equal(value, 0);
    assert_int_equal(tn_whole_parse("18446744073709551615", &value), TN_DECIMAL_OK);
    assert_true(value == UINT64_MAX);
    assert_int_equal(tn_whole_parse("0x10", &value), TN_DECIMAL_OK);
    assert_int_equal(value, 0);
}

static void wrong_whole_numbers_leave_the_output(void **state)
{
    uint64_t value = 7;

    (void)state;
    assert_int_equal(tn_whole_parse("", &value), TN_DECIMAL_NONE);
    assert_int_equal(tn_whole_parse("MB40", &value), TN_DECIMAL_NONE);
    assert_int_equal(tn_whole_parse("-", &value), TN_DECIMAL_NONE);
    assert_int_equal(tn_whole_parse("-5", &value), TN_DECIMAL_NEGATIVE);
    assert_int_equal(tn_whole_parse("-99999999999999999999", &value), TN_DECIMAL_NEGATIVE);
    assert_int_equal(tn_whole_parse("18446744073709551616", &value), TN_DECIMAL_RANGE);
    assert_int_equal(value, 7);
}

static void reals_are_read_as_stod_does(void **state)
{
    double value = 7.0;

    (void)state;
    assert_int_equal(tn_real_parse("0.8junk", &value), TN_DECIMAL_OK);
    assert_true(value >= 0.8 && value <= 0.8);
    assert_int_equal(tn_real_parse("5e-1", &value), TN_DECIMAL_OK);
    assert_true(value >= 0.5 && value <= 0.5);
    assert_int_equal(tn_real_parse("inf", &value), TN_DECIMAL_OK);
    assert_true(isinf(value));
    assert_int_equal(tn_real_parse("x", &value), TN_DECIMAL_NONE);
    assert_int_equal(tn_real_parse("1e999", &value), TN_DECIMAL_RANGE);
    assert_int_equal(tn_real_parse("0.000000000000000000000000000000000000000000000000000000000000"
                                   "00000000001",
                                   &value),
                     TN_DECIMAL_RANGE);
}

static void reals_print_short_and_come_back(void **state)
{
    const double values[] = {0.0, 0.1, 0.8, 1.0 / 3.0, 0.1 + 0.2, 1e-300, 1.0, 123456789.125};

    (void)state;
    assert_string_equal(tn_real_format(0.8).text, "0.8");
    assert_string_equal(tn_real_format(1.0).text, "1");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        double back = -1.0;

        assert_int_equal(tn_real_parse(tn_real_format(values[i]).text, &back), TN_DECIMAL_OK);
        assert_memory_equal(&back, &values[i], sizeof back);
    }
}

static void a_number_ends_where_it_ends(void **state)
{
    static const char zeros[] = "0000000000000000000000000000000000000000000000000000000000000001";
    char text[256];
    double value = 7.0;

    (void)state;
    assert_int_equal(tn_real_parse("1~", &value), TN_DECIMAL_OK);
    assert_true(value >= 1.0 && value <= 1.0);
    (void)snprintf(text, sizeof text, "2x%s", zeros); /* too long, but not the number */
    assert_int_equal(tn_real_parse(text, &value), TN_DECIMAL_OK);
    assert_true(value >= 2.0 && value <= 2.0);
    assert_int_equal(tn_real_parse(zeros, &value), TN_DECIMAL_RANGE);
    assert_true(value >= 2.0 && value <= 2.0);
}

/* What rounds to too large a number, what is too small to be read, and what is no number. */
static void reals_at_the_ends_print(void **state)
{
    double back = 0.0;

    (void)state;
    assert_string_equal(tn_real_format(DBL_MAX).text, "1.7976931348623157e+308");
    assert_int_equal(tn_real_parse(tn_real_format(DBL_MAX).text, &back), TN_DECIMAL_OK);
    assert_true(back >= DBL_MAX);
    assert_string_equal(tn_real_format(-DBL_MAX).text, "-1.7976931348623157e+308");
    assert_string_equal(tn_real_format(5e-324).text, "4.9406564584124654e-324");
    assert_string_equal(tn_real_format((double)INFINITY).text, "inf");
    assert_string_equal(tn_real_format((double)NAN).text, "nan");
}

static void the_locale_changes_nothing(void **state)
{
    double value = 7.0;

    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8")) {
        print_message("skip: no German locale here\n");
        skip();
    }
    assert_int_equal(tn_real_parse("0.8", &value), TN_DECIMAL_OK);
    assert_true(value >= 0.8 && value <= 0.8);
    assert_int_equal(tn_real_parse("0,8", &value), TN_DECIMAL_OK);
    assert_true(value >= 0.0 && value <= 0.0);
    assert_string_equal(tn_real_format(0.25).text, "0.25");
    (void)setlocale(LC_NUMERIC, "C");
}

static void text_distance_counts_letters(void **state)
{
    (void)state;
    assert_int_equal(tarn_text_distance("", ""), 0);
    assert_int_equal(tarn_text_distance("abc", "abc"), 0);
    assert_int_equal(tarn_text_distance("", "abc"), 3);
    assert_int_equal(tarn_text_distance("kitten", "sitting"), 3);
    assert_int_equal(tarn_text_distance("fra", "far"), 1); /* a transposition */
    static const char too_long[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    assert_int_equal(tarn_text_distance(too_long, "a"), UINT32_MAX);
    assert_int_equal(tarn_text_distance("a", too_long), UINT32_MAX);
    assert_int_equal(tarn_text_distance("", too_long + 1), 63); /* the longest */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_end_where_the_digits_end),
        cmocka_unit_test(wrong_whole_numbers_leave_the_output),
        cmocka_unit_test(reals_are_read_as_stod_does),
        cmocka_unit_test(reals_print_short_and_come_back),
        cmocka_unit_test(a_number_ends_where_it_ends),
        cmocka_unit_test(reals_at_the_ends_print),
        cmocka_unit_test(the_locale_changes_nothing),
        cmocka_unit_test(text_distance_counts_letters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
