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

static struct tarn_ranks *ranks_of(const struct asked *asked)
{
    struct tarn_ranks *made;
    struct tarn_error error;

    assert_int_equal(tarn_ranks_create(&asked->options, &made, &error), TARN_OK);
    for (int i = 0; i < asked->count; i++) {
        char name[16];

        (void)snprintf(name, sizeof name, "rank%d", i);
        assert_int_equal(tarn_ranks_add(made, asked->snapshots[i], name, &error), TARN_OK);
    }
    return made;
}

static struct tarn_ranks_result *compute(const struct asked *asked)
{
    struct tarn_ranks *made = ranks_of(asked);
    struct tarn_ranks_result *result;
    struct tarn_error error;

    assert_int_equal(tarn_ranks_compare(made, &result, &error), TARN_OK);
    tarn_ranks_destroy(made); /* the result outlives them */
    return result;
}

static void the_one_that_stands_out(void **state)
{
    struct asked asked = asked_of(5);
    char *text;

    (void)state;
    asked.options.rows = 2;
    struct tarn_ranks_result *result = compute(&asked);

    assert_int_equal(result->rank_count, 5);
    assert_int_equal(result->requested.least, 1001);
    assert_int_equal(result->requested.median, 1004);
    assert_string_equal(result->ranks[0].file, "rank2");
    assert_true(result->ranks[0].is_outlier);
    assert_false(result->ranks[1].is_outlier);
    assert_int_equal(result->other_count, 3);
    assert_string_equal(result->typical.file, "rank3");
    assert_int_equal(result->outlier_count, 1);
    assert_string_equal(result->outliers[0].rank.file, "rank2");
    assert_int_equal(result->outliers[0].changes.rows[0].change, 4999);
    assert_int_equal(result->total.requested, result->others.requested +
                                                  result->ranks[0].requested +
                                                  result->ranks[1].requested);
    tarn_report_destroy(result);
    text = report_text(ranks, &asked);
    assert_non_null(strstr(text, "5 ranks\nrequested: min 1001 B, median 1004 B, max 5.86 KiB\n"));
    assert_non_null(strstr(text, "rank2, device 0  outlier\n"));
    assert_non_null(strstr(text, "    2.94 KiB         0 B            others (3 ranks)\n"));
    assert_non_null(strstr(text, "rank2, device 0 (after) against rank3, device 0 (before)\n"));
    assert_non_null(strstr(text, "    +4.88 KiB         1 B    4.88 KiB        +0  grew    "
                                 "b.py:2:b\n"));
    free(text);
    asked_close(&asked);
}

#define FRAME(file, line) "{'name': 'f', 'filename': '" file "', 'line': " line "}"
#define ALIKE(line)                                                                                \
    "'frames': [" FRAME("m.py", "1") ", " FRAME("a.py", "1") ", " FRAME("b.py", "1") ", " FRAME(   \
        "c.py", "1") ", " FRAME("d.py", line) ", " FRAME("main.py", "1") "]"

/* Two stacks that differ in a frame that labels leave out. */
static struct tarn_snapshot *run_alike(int a, int b)
{
    char json[2048];

    (void)snprintf(
        json, sizeof json,
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, " ALIKE(
            "5") "},"
                 "{'action': 'alloc', 'addr': 99000, 'size': %d, 'stream': 0, " ALIKE("6") "}]]}",
        a, b);
    return report_parse(json);
}

/* Also when their snapshots are gone. */
static void stacks_that_look_alike_differ(void **state)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}, .count = 5};
    struct tarn_ranks *made;
    struct tarn_ranks_result *result;
    struct tarn_error error;

    (void)state;
    for (int i = 0; i < asked.count; i++) {
        asked.snapshots[i] = i == 2 ? run_alike(9000, 7000) : run_alike(1000 + i, 1000);
    }
    made = ranks_of(&asked);
    asked_close(&asked);
    assert_int_equal(tarn_ranks_compare(made, &result, &error), TARN_OK);
    tarn_ranks_destroy(made);
    assert_int_equal(result->outlier_count, 1);
    assert_int_equal(result->outliers[0].changes.row_count, 2);
    assert_non_null(strstr(result->outliers[0].changes.rows[0].group.text, "d.py:5:f"));
    assert_non_null(strstr(result->outliers[0].changes.rows[1].group.text, "d.py:6:f"));
    tarn_report_destroy(result);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void alike_or_too_few(void **state)
{
    struct asked asked = {.options = {.struct_size = sizeof asked.options}, .count = 3};

    (void)state;
    for (int i = 0; i < 3; i++) {
        asked.snapshots[i] = run(1000, 1);
    }
    for (asked.count = 3; asked.count > 1; asked.count--) {
        struct tarn_ranks_result *result = compute(&asked);

        assert_int_equal(result->outlier_count, 0);
        assert_false(result->ranks[0].is_outlier);
        tarn_report_destroy(result);
    }
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
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_one_that_stands_out), cmocka_unit_test(stacks_that_look_alike_differ),
        cmocka_unit_test(alike_or_too_few),        cmocka_unit_test(nothing_and_nonsense),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
