/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

enum {
    RANKS_MAX = 8
};

struct asked {
    struct tarn_report_options options;
    struct tarn_snapshot *snapshots[RANKS_MAX];
    int count;
};

static enum tarn_status ranks(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct asked *asked = context;
    struct tarn_ranks *made;
    enum tarn_status status = tarn_ranks_create(&asked->options, &made, error);

    for (int i = 0; status == TARN_OK && i < asked->count; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "rank%d", i);
        status = tarn_ranks_add(made, asked->snapshots[i], name, error);
    }
    if (status == TARN_OK) {
        status = tarn_ranks_report(made, writer, error);
    }
    tarn_ranks_destroy(made);
    return status;
}

/* A block of `a`, and one of `b` if it has a size. */
static struct tarn_snapshot *run(int a, int b)
{
    char json[1024];

    (void)snprintf(json, sizeof json,
                   "{'segments': [], 'device_traces': [["
                   "{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, 'frames': ["
                   " {'name': 'a', 'filename': 'a.py', 'line': 1}]},"
                   "{'action': 'alloc', 'addr': 99000, 'size': %d, 'stream': 0, 'frames': ["
                   " {'name': 'b', 'filename': 'b.py', 'line': 2}]}]]}",
                   a, b);
    return report_parse(json);
}

static struct asked asked_of(int count)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}, .count = count};

    for (int i = 0; i < count; i++) {
        asked.snapshots[i] = i == 2 ? run(1003, 5000) : run(1000 + i, 1);
    }
    return asked;
}

static void asked_close(struct asked *asked)
{
    for (int i = 0; i < asked->count; i++) {
        tarn_snapshot_destroy(asked->snapshots[i]);
    }
}

static void the_one_that_stands_out(void **state)
{
    struct asked asked = asked_of(5);
    char *text;

    (void)state;
    asked.options.rows = 2;
    text = report_text(ranks, &asked);
    assert_non_null(
        strstr(text, "5 ranks\nallocated: least 1001.0B, median 1004.0B, most 5.9KiB\n"));
    assert_non_null(strstr(text, "rank2, device 0  outlier\n"));
    assert_non_null(strstr(text, "      2.9KiB        0.0B            others (3 ranks)\n"));
    assert_non_null(strstr(text, "      9.8KiB        0.0B            total\n"));
    assert_non_null(strstr(text, "rank2, device 0 (after) against rank3, device 0 (before)\n"));
    assert_non_null(strstr(text, "      +4.9KiB        1.0B      4.9KiB        +0  grew    "
                                 "b.py:2:b\n"));
    free(text);
    asked.options.format = TARN_REPORT_JSON;
    text = report_text(ranks, &asked);
    assert_non_null(strstr(text, "\"schema\": \"tarn.ranks/1\""));
    assert_non_null(strstr(text, "\"is_outlier\": true\n"));
    assert_non_null(strstr(text, "\"change_bytes\": 4999,"));
    free(text);
    asked_close(&asked);
}

static void alike_or_too_few(void **state)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}, .count = 3};
    char *text;

    (void)state;
    for (int i = 0; i < 3; i++) {
        asked.snapshots[i] = run(1000, 1);
    }
    text = report_text(ranks, &asked);
    assert_non_null(strstr(text, "no rank stands out\n"));
    free(text);
    asked.count = 2;
    text = report_text(ranks, &asked);
    assert_non_null(strstr(text, "too few ranks to tell which stands out: 3 are needed\n"));
    free(text);
    asked.count = 3;
    asked_close(&asked);
}

static void nothing_and_nonsense(void **state)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}};
    struct tarn_error error;

    (void)state;
    assert_int_equal(ranks(&asked, NULL, &error), TARN_ERR_STATE);
    asked.count = 1;
    asked.snapshots[0] = report_load("tiny.before");
    assert_int_equal(ranks(&asked, NULL, &error), TARN_ERR_NOT_SUPPORTED);
    asked_close(&asked);
}

static void failures_leave_nothing(void **state)
{
    struct asked asked = asked_of(4);

    (void)state;
    assert_true(report_fails_cleanly(ranks, &asked) >= 20);
    report_is_refused(ranks, &asked);
    asked_close(&asked);
    assert_int_equal(tarn_host_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_stands_out),
        cmocka_unit_test(alike_or_too_few),
        cmocka_unit_test(nothing_and_nonsense),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
