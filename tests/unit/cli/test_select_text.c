/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cli/select_text.h"

static void spans(void **state)
{
    static const struct {
        const char *text;
        uint64_t first, last;
    } good[] = {{"5..9", 5, 9}, {"5..", 5, UINT64_MAX}, {"..9", 0, 9}, {"7", 7, 7}, {"0..0", 0, 0}};
    static const char *const bad[] = {
        "", "..", "a", "5...9", "9..5", "5..9x", "-1", "5.9..", "18446744073709551616"};
    struct tarn_span span;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(cli_read_span(good[i].text, &span));
        assert_true(span.is_given);
        assert_int_equal(span.first, good[i].first);
        assert_int_equal(span.last, good[i].last);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(cli_read_span(bad[i], &span));
    }
}

static void times(void **state)
{
    static const struct {
        const char *text;
        uint64_t first, last;
    } good[] = {{"1.5..2", 1500000, 2000000},
                {"300ms..", 300000, UINT64_MAX},
                {"..20us", 0, 20},
                {"1s..1000.5ms", 1000000, 1000500},
                {"1..2", 1000000, 2000000}};
    static const char *const bad[] = {"x",   "1.5.5", "1m..2", "..", "99999999999999999999",
                                      "1e5", "2..1"};
    struct tarn_span span;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(cli_read_time_span(good[i].text, &span));
        assert_int_equal(span.first, good[i].first);
        assert_int_equal(span.last, good[i].last);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(cli_read_time_span(bad[i], &span));
    }
}

static void instants(void **state)
{
    static const struct {
        const char *text;
        enum tarn_instant_kind kind;
        uint64_t number;
    } good[] = {{"peak", TARN_AT_PEAK, 0},       {"reserved-peak", TARN_AT_RESERVED_PEAK, 0},
                {"start", TARN_AT_START, 0},     {"end", TARN_AT_END, 0},
                {"oom", TARN_AT_OOM, 1},         {"oom:3", TARN_AT_OOM, 3},
                {"event:17", TARN_AT_EVENT, 17}, {"time:1.5", TARN_AT_TIME, 1500000},
                {"time:7us", TARN_AT_TIME, 7},   {"step:2", TARN_AT_STEP, 2}};
    static const char *const bad[] = {
        "", "Peak", "peak:1", "oom:", "event:", "event:x", "time:1m", "step", "17", "oom:1 "};
    struct tarn_instant instant;

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(cli_read_instant(good[i].text, &instant));
        assert_int_equal(instant.kind, good[i].kind);
        assert_int_equal(instant.number, good[i].number);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(cli_read_instant(bad[i], &instant));
    }
}

static void pools(void **state)
{
    static const char *const bad[] = {"", "0", "0,", ",1", "0,1,2", "all", "0, 1"};
    struct tarn_selection selection = {.struct_size = sizeof selection};

    (void)state;
    assert_true(cli_read_pool("default", &selection));
    assert_int_equal(selection.pools, TARN_POOLS_DEFAULT);
    assert_true(cli_read_pool("private", &selection));
    assert_int_equal(selection.pools, TARN_POOLS_PRIVATE);
    assert_true(cli_read_pool("4,2", &selection));
    assert_int_equal(selection.pools, TARN_POOLS_ONE);
    assert_int_equal(selection.pool[0], 4);
    assert_int_equal(selection.pool[1], 2);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(cli_read_pool(bad[i], &selection));
    }
}

static void thresholds(void **state)
{
    static const char *const bad[] = {"", "%", "x", "2%%", "-1%", "1.2.3%", "5MiBs", "5Mx", "nan"};
    double percent;
    uint64_t bytes;

    (void)state;
    assert_true(cli_read_threshold("2.5%", &percent, &bytes));
    assert_true(percent == 2.5);
    assert_int_equal(bytes, 0);
    assert_true(cli_read_threshold("1.5KiB", &percent, &bytes));
    assert_true(percent < 0);
    assert_int_equal(bytes, 1536);
    assert_true(cli_read_threshold("5MB", &percent, &bytes)); /* as every size */
    assert_int_equal(bytes, 5000000);
    assert_true(cli_read_threshold("0", &percent, &bytes));
    assert_true(percent < 0);
    assert_int_equal(bytes, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_false(cli_read_threshold(bad[i], &percent, &bytes));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans), cmocka_unit_test(times),      cmocka_unit_test(instants),
        cmocka_unit_test(pools), cmocka_unit_test(thresholds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
