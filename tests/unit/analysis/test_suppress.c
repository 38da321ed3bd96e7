/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "analysis/suppress.h"
#include "snapshot/snapshot.h"

static bool suppresses(const char *text)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 1, 'size': 1, 'stream': 0,"
        " 'frames': [{'name': 'my_cache.get', 'filename': '/x/y.py', 'line': 3},"
        " {'name': 'main', 'filename': 'train+1.py', 'line': 1},"
        " {'name': 'pow^2', 'filename': 'maths.py', 'line': 1}]}]]}");
    struct tarn_suppressions *suppressions;
    struct tarn_error error;

    if (tn_suppressions_parse(text, strlen(text), "my.supp", &suppressions, &error)) {
        fail_msg("%s", error.text);
    }
    const bool is = tn_suppresses(suppressions, tn_snapshot_model(snapshot), 2);

    assert_false(tn_suppresses(suppressions, tn_snapshot_model(snapshot), TN_STACK_NONE));
    tarn_suppressions_destroy(suppressions);
    tarn_snapshot_destroy(snapshot);
    return is;
}

/* As LeakSanitizer matches: a part, anything for '*', both ends for '^' and '$', else letters. */
static void patterns(void **state)
{
    (void)state;
    assert_true(suppresses("leak:my_cache\n"));
    assert_true(suppresses("# why\nleak: cache.get \n"));
    assert_true(suppresses("leak:^my_cache.get$\n"));
    assert_true(suppresses("leak:my*get\n"));
    assert_true(suppresses("leak:train+1\n"));
    assert_true(suppresses("leak:no\nleak:y.py\n"));
    assert_true(suppresses("leak:pow^2\n"));
    assert_true(suppresses("leak:^main$\n"));
    assert_false(suppresses("leak:.ain$\n")); /* only '*' stands for anything, also at the ends */
    assert_false(suppresses("leak:mai.\n"));
    assert_false(suppresses("leak:my^cache\n")); /* letters inside of a pattern */
    assert_false(suppresses("leak:my_cache$get\n"));
    assert_false(suppresses("leak:my_cache.get$$\n"));
    assert_false(suppresses("leak:^cache\n"));
    assert_false(suppresses("leak:cache$\n"));
    assert_false(suppresses("leak:mycache\n"));
    assert_false(suppresses("leak:my_cacheXget\n"));
    assert_false(suppresses("leak:trainn1\n"));
    assert_false(suppresses("\n"));
}

static void bad_files(void **state)
{
    struct tarn_suppressions *suppressions;
    struct tarn_error error;
    char text[4096];

    (void)state;
    (void)snprintf(text, sizeof text, "leak:a\nleak:%04050d\n",
                   0); /* more than a pattern may have */
    assert_int_equal(tn_suppressions_parse(text, strlen(text), "my.supp", &suppressions, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_null(suppressions);
    assert_non_null(strstr(error.text, "my.supp, line 2: \"000"));
    assert_int_equal(
        tn_suppressions_parse("leak:a\nrace:b\n", 14, "my.supp", &suppressions, &error),
        TARN_ERR_INVALID_ARGUMENT);
    assert_null(suppressions);
    assert_non_null(strstr(error.text, "my.supp, line 2: only \"leak:\" lines are understood"));
    assert_int_equal(tn_suppressions_parse("leak\n", 5, "my.supp", &suppressions, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(error.text, "my.supp, line 1: "));
    assert_int_equal(tn_suppressions_parse("leak:a\n", 7, "my.supp", &suppressions, &error),
                     TARN_OK);
    struct tarn_suppressions *none = suppressions;

    assert_int_equal(tarn_suppressions_load("/nonexistent/s", &none, &error), TARN_ERR_IO);
    assert_null(none);
    tarn_suppressions_destroy(suppressions);
}

static void failures_leave_nothing(void **state)
{
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        struct tarn_suppressions *suppressions;
        struct tarn_error error = {.status = TARN_OK};
        const uint64_t calls = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(n);
        status = tn_suppressions_parse("leak:a\n", 7, "x", &suppressions, &error);
        tarn_host_fail_nth(0);
        assert_int_equal(
            status, tarn_host_get_usage().alloc_calls - calls < n ? TARN_OK : TARN_ERR_HOST_MEMORY);
        assert_int_equal(error.status, status);
        tarn_suppressions_destroy(suppressions);
        assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(patterns),
        cmocka_unit_test(bad_files),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
