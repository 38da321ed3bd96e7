/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

struct asked {
    const struct tarn_snapshot *before;
    const struct tarn_snapshot *after;
    struct tarn_report_options options;
    struct tarn_diff_options how;
};

static struct tarn_diff_counts counts;

static enum tarn_status diff(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct asked *asked = context;

    return tarn_report_diff(asked->before, asked->after, &asked->options, &asked->how, writer,
                            &counts, error);
}

static void says(const struct asked *asked, const char *part)
{
    char *text = report_text(diff, asked);

    if (!strstr(text, part)) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
    free(text);
}

/* One block each of `grown`, `gone` or `new`, in files below `root`, at different lines. */
static struct tarn_snapshot *run(const char *root, int line, int grown, const char *other)
{
    char json[2048];

    (void)snprintf(json, sizeof json,
                   "{'segments': [], 'device_traces': [["
                   "{'action': 'alloc', 'addr': 512, 'size': %d, 'stream': 0, 'frames': ["
                   " {'name': 'grown', 'filename': '%s/a.py', 'line': %d}]},"
                   "{'action': 'alloc', 'addr': 9000, 'size': 100, 'stream': 0, 'frames': ["
                   " {'name': '%s', 'filename': '%s/b.py', 'line': 7}]}]]}",
                   grown, root, line, other, root);
    return report_parse(json);
}

static void told_by_name(void **state)
{
    struct asked asked = {run("/x", 1, 1000, "gone"),
                          run("/x", 1, 3000, "new"),
                          {.struct_size = sizeof asked.options},
                          {.struct_size = sizeof asked.how}};

    (void)state;
    report_says(diff, &asked,
                "device 0\n"
                "before: 0 B reserved, 1.07 KiB requested, at event 1 of 2\n"
                "after: 0 B reserved, 3.03 KiB requested, at event 1 of 2\n"
                "total change: +1.95 KiB (+181.82%)\n\n"
                "       change      before       after    blocks          allocated by\n"
                "    +1.95 KiB      1000 B    2.93 KiB        +0  grew    a.py:1:grown\n"
                "       +100 B         0 B       100 B        +1  new     b.py:7:new\n"
                "       -100 B       100 B         0 B        -1  gone    b.py:7:gone\n"
                "    +1.95 KiB    1.07 KiB    3.03 KiB        +0          total\n\n"
                "       +100 B  new     1 stack\n"
                "    +1.95 KiB  grew    1 stack\n"
                "       -100 B  gone    1 stack\n");
    assert_int_equal(counts.before_bytes, 1100);
    assert_int_equal(counts.after_bytes, 3100);
    assert_true(counts.growth_bytes == 2000);
    assert_true(counts.growth_percent > 181.8 && counts.growth_percent < 181.9);
    asked.options.rows = 1;
    says(&asked, "         +0 B       100 B       100 B        +0          others (2 stacks)\n");
    asked.how.folded = true;
    report_says(diff, &asked,
                "/x/a.py:1:grown 1000 3000\n/x/b.py:7:new 0 100\n/x/b.py:7:gone 100 0\n");
    tarn_snapshot_destroy((struct tarn_snapshot *)(uintptr_t)asked.after);
    tarn_snapshot_destroy((struct tarn_snapshot *)(uintptr_t)asked.before);
}

/* Long names differ, too, and are neither compared nor written in full for each stack. */
static void long_names(void **state)
{
    enum {
        LENGTH = 100000
    };
    char *json = calloc(1, LENGTH + 1000);
    struct asked asked = {
        NULL, NULL, {.struct_size = sizeof asked.options}, {.struct_size = sizeof asked.how}};

    (void)state;
    assert_non_null(json);
    for (int i = 0; i < 3; i++) {
        const int begin = snprintf(json, 200,
                                   "{'segments': [], 'device_traces': [[{'action': "
                                   "'alloc', 'addr': 512, 'size': 64, 'stream': 0, "
                                   "'frames': [{'filename': 'a.py', 'line': 1, 'name': '");
        struct tarn_snapshot **side = i == 0 ? (struct tarn_snapshot **)(uintptr_t)&asked.before
                                             : (struct tarn_snapshot **)(uintptr_t)&asked.after;

        memset(json + begin, 'n', LENGTH);
        (void)snprintf(json + begin + LENGTH, 200, "%c'}]}]]}", i == 2 ? 'o' : 'n');
        if (i == 2) {
            tarn_snapshot_destroy(*side);
        }
        *side = report_parse(json);
        asked.how.folded = false;
        if (i > 0) {
            says(&asked, i == 1 ? "  same    1 stack\n" : "  new     1 stack\n");
            asked.how.folded = true;
            char *text = report_text(diff, &asked);

            assert_non_null(strstr(text, "nnn...(100001 bytes, "));
            assert_true(strlen(text) < 10000);
            free(text);
        }
    }
    tarn_snapshot_destroy((struct tarn_snapshot *)(uintptr_t)asked.after);
    tarn_snapshot_destroy((struct tarn_snapshot *)(uintptr_t)asked.before);
    free(json);
}

static void lines_and_prefixes(void **state)
{
    struct tarn_snapshot *before = run("/home/me", 1, 500, "same");
    struct tarn_snapshot *after = run("/srv", 2, 500, "same");
    struct asked asked = {
        before, after, {.struct_size = sizeof asked.options}, {.struct_size = sizeof asked.how}};

    (void)state;
    says(&asked, "  new     2 stacks\n");
    asked.how.strip_prefix = "/home/me";
    says(&asked, "  new     2 stacks\n");
    tarn_snapshot_destroy(after);
    after = run("", 2, 500, "same");
    asked.after = after;
    says(&asked, "         +0 B  same    1 stack\n");
    asked.how.ignore_lines = true;
    says(&asked, "         +0 B  same    2 stacks\n");
    asked.options.by = TARN_BY_FILE;
    says(&asked, "         +0 B  same    2 files\n");
    asked.options.by = TARN_BY_LINE;
    says(&asked, "         +0 B  same    2 lines\n");
    asked.options.by = TARN_BY_FRAME;
    says(&asked, "         +0 B  same    2 frames\n");
    asked.options.by = TARN_BY_FUNCTION;
    says(&asked, "         +0 B  same    2 functions\n");
    tarn_snapshot_destroy(after);
    tarn_snapshot_destroy(before);
}

static void two_instants_of_one_file(void **state)
{
    struct tarn_snapshot *snapshot = run("/x", 1, 1000, "later");
    struct tarn_selection selection = {.struct_size = sizeof selection, .at = {TARN_AT_EVENT, 0}};
    struct asked asked = {snapshot,
                          snapshot,
                          {.struct_size = sizeof asked.options, .selection = &selection},
                          {.struct_size = sizeof asked.how, .to = {.kind = TARN_AT_END}}};

    (void)state;
    struct tarn_diff_result *results;
    struct tarn_diff_counts sums;
    struct tarn_error error;
    size_t count;

    assert_int_equal(
        tarn_diff_compute(snapshot, snapshot, &asked.options, &asked.how, &results, &count, &error),
        TARN_OK);
    assert_int_equal(count, 1);
    assert_int_equal(results[0].changes.row_count, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct tarn_change *row = &results[0].changes.rows[i];

        if (strcmp(row->group.name, "/x/b.py:7:later") == 0) {
            assert_string_equal(row->kind, "new");
            assert_string_equal(row->group.text, "b.py:7:later");
            assert_int_equal(row->change, 100);
            assert_int_equal(row->block_change, 1);
        }
    }
    tarn_diff_count(results, count, &sums);
    struct tarn_diff_result *plain;

    assert_int_equal(tarn_diff_compute(snapshot, snapshot, NULL, NULL, &plain, &count, &error),
                     TARN_OK);
    assert_int_equal(plain[0].changes.total.change, 0); /* by default both at the peak */
    tarn_report_destroy(plain);
    assert_int_equal(sums.before_bytes, results[0].before.at.requested);
    assert_int_equal(sums.after_bytes, results[0].after.at.requested);
    assert_true(sums.growth_bytes == (double)results[0].changes.total.change);
    tarn_report_destroy(results);
    says(&asked, "       +100 B         0 B       100 B        +1  new     b.py:7:later\n");
    tarn_snapshot_destroy(snapshot);
}

static void devices_that_one_lacks(void **state)
{
    struct tarn_snapshot *before = run("/x", 1, 1000, "a");
    struct tarn_snapshot *after =
        report_parse("{'segments': [], 'device_traces': [[], ["
                     "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0}]]}");
    struct asked asked = {
        before, after, {.struct_size = sizeof asked.options}, {.struct_size = sizeof asked.how}};
    struct tarn_error error;

    (void)state;
    says(&asked, "after: no trace of this device\ntotal change: -1.07 KiB (-100.00%)\n");
    says(&asked, "device 1\nbefore: no trace of this device\n");
    assert_true(counts.growth_percent > 1e6);
    asked.options.format = TARN_REPORT_JSON;
    says(&asked, "\"after\": {},\n");
    says(&asked, "\"before\": {},\n");
    asked.options.format = TARN_REPORT_TEXT;
    asked.before = after;
    asked.after = before;
    says(&asked, "device 0\nbefore: no trace of this device\n");
    says(&asked, "after: no trace of this device\ntotal change: -9 B (-100.00%)\n");
    asked.before = before;
    asked.after = after;
    asked.options.one_device = true;
    asked.options.device = 2;
    assert_int_equal(diff(&asked, NULL, &error), TARN_ERR_NOT_FOUND);
    asked.options.device = -1;
    assert_int_equal(diff(&asked, NULL, &error), TARN_ERR_NOT_FOUND);
    assert_string_equal(error.text,
                        "the file has no trace of device -1; \"tarn info\" lists the devices");
    tarn_snapshot_destroy(after);
    after = report_load("tiny.before");
    asked.after = after;
    assert_int_equal(diff(&asked, NULL, &error), TARN_ERR_NOT_SUPPORTED);
    tarn_snapshot_destroy(after);
    tarn_snapshot_destroy(before);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *before = report_load("tiny");
    struct tarn_snapshot *after = report_load("cudagraph");
    const struct asked asked = {
        before, after, {.struct_size = sizeof asked.options}, {.struct_size = sizeof asked.how}};

    (void)state;
    assert_true(report_fails_cleanly(diff, &asked) >= 20);
    report_is_refused(diff, &asked);
    tarn_snapshot_destroy(after);
    tarn_snapshot_destroy(before);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_by_name),           cmocka_unit_test(long_names),
        cmocka_unit_test(lines_and_prefixes),     cmocka_unit_test(two_instants_of_one_file),
        cmocka_unit_test(devices_that_one_lacks), cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
