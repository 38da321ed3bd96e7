/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static enum tarn_status churn(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_churn(asked->snapshot, &asked->options, writer, error);
}

/* `a` comes and goes twice with 10 bytes and once with 20, `b` once with 1000; `c` stays. */
static const char brief[] =
    "{'segments': [], 'device_traces': [["
    "{'action': 'alloc', 'addr': 900, 'size': 7, 'stream': 0, 'frames': ["
    " {'name': 'c', 'filename': 'c.py', 'line': 3}]},"
    "{'action': 'alloc', 'addr': 100, 'size': 10, 'stream': 0, 'frames': ["
    " {'name': 'a', 'filename': 'a.py', 'line': 1}]},"
    "{'action': 'free_completed', 'addr': 100, 'size': 10, 'stream': 0},"
    "{'action': 'alloc', 'addr': 200, 'size': 1000, 'stream': 0, 'frames': ["
    " {'name': 'b', 'filename': 'b.py', 'line': 2}]},"
    "{'action': 'alloc', 'addr': 100, 'size': 10, 'stream': 0, 'frames': ["
    " {'name': 'a', 'filename': 'a.py', 'line': 1}]},"
    "{'action': 'free_completed', 'addr': 100, 'size': 10, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 200, 'size': 1000, 'stream': 0},"
    "{'action': 'alloc', 'addr': 100, 'size': 20, 'stream': 0, 'frames': ["
    " {'name': 'a', 'filename': 'a.py', 'line': 1}]},"
    "{'action': 'free_completed', 'addr': 100, 'size': 20, 'stream': 0}]]}";

static void by_how_many(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(brief);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    report_says(
        churn, &asked,
        "device 0\n"
        "4 of 5 allocations (80.0%) were freed within 64 events, 1.02 KiB of 1.02 KiB requested\n\n"
        "    blocks   share       bytes  lifetime   main size   main %  allocated by\n"
        "         3   75.0%        40 B       1.0        10 B    66.7%  a.py:1:a\n"
        "         1   25.0%      1000 B       3.0      1000 B   100.0%  b.py:2:b\n"
        "         4  100.0%    1.02 KiB       1.5                       total\n");
    tarn_snapshot_destroy(snapshot);
}

static void short_lifetimes_in_numbers(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(brief);
    const struct tarn_report_options options = {
        .struct_size = sizeof options, .lifetime_max = 2, .rows = 1};
    struct tarn_churn_result *result;
    struct tarn_error error;
    size_t count;

    (void)state;
    assert_int_equal(tarn_churn_compute(snapshot, &options, &result, &count, &error), TARN_OK);
    assert_int_equal(result->allocations, 5);
    assert_int_equal(result->allocated, 1047);
    assert_int_equal(result->row_count, 1);
    assert_int_equal(result->rows[0].allocations, 3);
    assert_int_equal(result->rows[0].usual_size, 10);
    assert_int_equal(result->rows[0].of_usual_size, 2);
    assert_int_equal(result->total.allocations, 3);
    assert_int_equal(result->total.allocated, 40);
    assert_int_equal(result->total.lifetime_events, 3);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

static void nothing_is_brief(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0}]]}");
    struct tarn_churn_result *result;
    struct tarn_error error;
    size_t count;

    (void)state;
    assert_int_equal(tarn_churn_compute(snapshot, NULL, &result, &count, &error), TARN_OK);
    assert_int_equal(result->lifetime_max, 64);
    assert_int_equal(result->allocations, 1);
    assert_int_equal(result->row_count, 0);
    assert_int_equal(result->total.allocations, 0);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    report_leaves_nothing(churn, "cudagraph", 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_how_many),
        cmocka_unit_test(short_lifetimes_in_numbers),
        cmocka_unit_test(nothing_is_brief),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
