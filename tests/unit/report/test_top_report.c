/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static enum tarn_status top(const void *context, const struct tarn_writer *writer,
                            struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_top(asked->snapshot, &asked->options, writer, error);
}

/* Three stacks: `a` holds much for long, `b` is called often, `c` was there before. */
static const char three[] =
    "{'segments': [{'address': 4096, 'total_size': 512, 'device': 0, 'blocks': ["
    " {'size': 512, 'requested_size': 500, 'state': 'active_allocated', 'frames': ["
    "  {'name': 'c', 'filename': 'c.py', 'line': 3}]}]}],"
    "'device_traces': [["
    "{'action': 'alloc', 'addr': 10000, 'size': 9000, 'stream': 0, 'frames': ["
    " {'name': 'a', 'filename': 'a.py', 'line': 1}]},"
    "{'action': 'alloc', 'addr': 20000, 'size': 10, 'stream': 0, 'frames': ["
    " {'name': 'b', 'filename': 'b.py', 'line': 2}]},"
    "{'action': 'free_completed', 'addr': 20000, 'size': 10, 'stream': 0},"
    "{'action': 'alloc', 'addr': 20000, 'size': 20, 'stream': 0, 'frames': ["
    " {'name': 'b', 'filename': 'b.py', 'line': 2}]},"
    "{'action': 'free_completed', 'addr': 10000, 'size': 9000, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 20000, 'size': 20, 'stream': 0}]]}";

#define HEAD                                                                                       \
    "device 0: 6 events\n     at peak      at end   allocated    blocks      life  allocated "     \
    "by\n"
#define A "      8.8KiB        0.0B      8.8KiB         1         4  a.py:1:a\n"
#define B "       20.0B        0.0B       30.0B         2         1  b.py:2:b\n"
#define C "      500.0B      500.0B        0.0B         0         -  c.py:3:c\n"
#define T "      9.3KiB      500.0B      8.8KiB         3         2  total\n"

static void every_order(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(three);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    report_says(top, &asked, HEAD A C B T);
    asked.options.order = TARN_TOP_BY_END;
    report_says(top, &asked, HEAD C A B T);
    asked.options.order = TARN_TOP_BY_ALLOCATED;
    report_says(top, &asked, HEAD A B C T);
    asked.options.order = TARN_TOP_BY_COUNT;
    report_says(top, &asked, HEAD B A C T);
    asked.options.rows = 1;
    report_says(top, &asked,
                HEAD B
                "      9.3KiB      500.0B      8.8KiB         1         4  others (2 stacks)\n" T);
    tarn_snapshot_destroy(snapshot);
}

static void json_rows(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(three);
    struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .format = TARN_REPORT_JSON, .rows = 1}};
    char *text = report_text(top, &asked);

    (void)state;
    assert_non_null(strstr(text, "\"schema\": \"tarn.top/1\""));
    assert_non_null(strstr(text, "\"peak_bytes\": 9000,\n"));
    assert_non_null(strstr(text, "\"others\": {\n          \"stacks\": 2,\n"
                                 "          \"peak_bytes\": 520,\n"));
    assert_non_null(strstr(text, "\"total\": {\n          \"peak_bytes\": 9520,\n"
                                 "          \"end_bytes\": 500,\n"
                                 "          \"allocated_bytes\": 9030,\n"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* Totals of a recorded run are its counters: allocation.all.allocated and the peak. */
static void totals_are_the_counters_of_the_run(void **state)
{
    struct tarn_snapshot *snapshot = report_load("gpt2_varlen");
    struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .format = TARN_REPORT_JSON, .rows = 3}};
    char *text = report_text(top, &asked);
    const char *total = strstr(text, "\"total\"");

    (void)state;
    assert_non_null(total);
    assert_non_null(strstr(total, "\"peak_bytes\": 10432354568,"));
    assert_non_null(strstr(total, "\"end_bytes\": 68157440,"));
    assert_non_null(strstr(total, "\"allocated_bytes\": 196766864707,"));
    assert_non_null(strstr(total, "\"allocations\": 11897,"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    report_leaves_nothing(top, "cudagraph", 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order),
        cmocka_unit_test(json_rows),
        cmocka_unit_test(totals_are_the_counters_of_the_run),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
