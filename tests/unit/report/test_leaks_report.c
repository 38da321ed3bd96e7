/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "analysis/suppress.h"
#include "tarn/report.h"

static enum tarn_status leaks(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_leaks(asked->snapshot, &asked->options, writer, error);
}

static void says(const struct report_asked *asked, const char *part)
{
    char *text = report_text(leaks, asked);

    if (!strstr(text, part)) {
        fail_msg("\"%s\" is not in:\n%s", part, text);
    }
    free(text);
}

/* A run of 8 steps. In each, `work` comes and goes, `leak` keeps 100 bytes more; in the fourth
 * `once` takes 5000 for good. `steps`: the program says them. */
static struct tarn_snapshot *leaking(bool steps)
{
    static char json[32768];
    size_t used = (size_t)snprintf(json, sizeof json, "{'segments': [], 'device_traces': [[");

    for (int i = 0; i < 8; i++) {
        const int time = 1000 + i * 100;

        used += (size_t)snprintf(
            json + used, sizeof json - used,
            "%s{'action': 'alloc', 'addr': 512, 'size': 10, 'stream': 0, 'time_us': %d, 'frames': ["
            " {'name': 'work', 'filename': 'w.py', 'line': 1}]},"
            "{'action': 'alloc', 'addr': %d, 'size': 100, 'stream': 0, 'time_us': %d, 'frames': ["
            " {'name': 'leak', 'filename': 'l.py', 'line': 2}]},"
            "{'action': 'free_completed', 'addr': 512, 'size': 10, 'stream': 0, 'time_us': %d}",
            i > 0 ? "," : "", time, 4096 + i * 512, time + 10, time + 20);
        if (i == 3) {
            used += (size_t)snprintf(
                json + used, sizeof json - used,
                ",{'action': 'alloc', 'addr': 65536, 'size': 5000, 'stream': 0, 'time_us': %d,"
                " 'frames': [{'name': 'once', 'filename': 'o.py', 'line': 3}]}",
                time + 30);
        }
    }
    used += (size_t)snprintf(json + used, sizeof json - used, "]]");
    if (steps) {
        used += (size_t)snprintf(json + used, sizeof json - used, ",'external_annotations': [");
        for (int i = 0; i < 8; i++) {
            used += (size_t)snprintf(
                json + used, sizeof json - used,
                "%s{'stage': 'START', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': %d},"
                "{'stage': 'END', 'name': 'Optimizer.step#A', 'device': 0, 'time_us': %d}",
                i > 0 ? "," : "", 1040 + i * 100, 1050 + i * 100);
        }
        used += (size_t)snprintf(json + used, sizeof json - used, "]");
    }
    (void)snprintf(json + used, sizeof json - used, "}");
    return report_parse(json);
}

#define HEAD                                                                                       \
    "     per step       change       first        last    blocks  grew in        from  "          \
    "allocated "                                                                                   \
    "by\n"

static void steady_growth_is_found_one_jump_is_not(void **state)
{
    struct tarn_snapshot *snapshot = leaking(true);
    uint64_t found = 9;
    struct report_asked asked = {snapshot,
                                 {.struct_size = sizeof asked.options, .leaks_out = &found}};

    (void)state;
    report_says(
        leaks, &asked,
        "device 0\n"
        "compared at 8 points in time, the ends of steps\n\n"
        "stacks that keep growing: 1\n" HEAD
        "       +100 B       +700 B       100 B       800 B         8    7 of 7          5  "
        "l.py:2:leak\n"
        "         +0 B    +4.88 KiB         0 B    4.88 KiB         1                       "
        "others (2 stacks)\n"
        "       +100 B    +5.57 KiB       100 B    5.66 KiB         9                       "
        "total\n");
    assert_int_equal(found, 1);
    tarn_snapshot_destroy(snapshot);
}

static struct tarn_leaks_result *compute(const struct report_asked *asked)
{
    struct tarn_leaks_result *results;
    struct tarn_error error;
    size_t count;

    assert_int_equal(tarn_leaks_compute(asked->snapshot, &asked->options, &results, &count, &error),
                     TARN_OK);
    assert_int_equal(count, 1);
    return results;
}

static void without_steps_a_stack_that_repeats_tells(void **state)
{
    static const struct {
        uint64_t parts;
        enum tarn_leak_points by;
        size_t points, leaks;
    } cases[] = {{0, TARN_LEAK_POINTS_STACK, 8, 1},
                 {5, TARN_LEAK_POINTS_PARTS, 5, 1},
                 {3, TARN_LEAK_POINTS_PARTS, 3, 0},
                 {UINT64_MAX, TARN_LEAK_POINTS_PARTS, 25, 1}};
    struct tarn_snapshot *snapshot = leaking(false);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        asked.options.parts = cases[i].parts;
        struct tarn_leaks_result *result = compute(&asked);

        assert_int_equal(result->points_by, cases[i].by);
        assert_int_equal(result->point_count, cases[i].points);
        assert_int_equal(result->leak_count, cases[i].leaks);
        if (i == 0) {
            assert_string_equal(result->repeated.text, "w.py:1:work");
            assert_int_equal(result->rows[0].growth, 100);
            assert_int_equal(result->rows[0].steps_grown, 7);
            assert_int_equal(result->rows[0].steps, 7);
        }
        tarn_report_destroy(result);
    }
    asked.options.parts = 3;
    says(&asked, "too few to tell what grows: at least 4 are needed\n");
    tarn_snapshot_destroy(snapshot);
}

static void suppressed_stacks_are_said(void **state)
{
    static const char text[] = "leak:l.py\n";
    struct tarn_snapshot *snapshot = leaking(true);
    struct tarn_suppressions *suppressions;
    uint64_t found = 9;

    (void)state;
    assert_int_equal(tn_suppressions_parse(text, sizeof text - 1, "x", &suppressions, NULL),
                     TARN_OK);
    const struct report_asked asked = {
        snapshot,
        {.struct_size = sizeof asked.options, .suppressions = suppressions, .leaks_out = &found}};
    struct tarn_leaks_result *result = compute(&asked);

    assert_int_equal(result->leak_count, 0);
    assert_int_equal(found, 0);
    assert_int_equal(result->points_by, TARN_LEAK_POINTS_STEPS);
    assert_int_equal(result->suppressed_blocks, 8);
    assert_int_equal(result->suppressed.first, 100);
    assert_int_equal(result->suppressed.last, 800);
    assert_int_equal(result->suppressed.change, 700);
    assert_int_equal(result->total.last, result->others.last + 800);
    tarn_report_destroy(result);
    assert_true(report_fails_cleanly(leaks, &asked) >= 10);
    tarn_suppressions_destroy(suppressions);
    tarn_snapshot_destroy(snapshot);
}

/* A row of their own where something else leaks. */
static void suppressed_stacks_have_a_row(void **state)
{
    static const char text[] = "leak:s.py\n";
    char json[8192] = "{'segments': [], 'device_traces': [[";
    struct tarn_suppressions *suppressions;

    (void)state;
    assert_int_equal(tn_suppressions_parse(text, sizeof text - 1, "x", &suppressions, NULL),
                     TARN_OK);
    for (int i = 0; i < 40; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json),
                       "%s{'action': 'alloc', 'addr': %d, 'size': 100, 'stream': 0, 'frames':"
                       " [{'name': 'f', 'filename': '%s.py', 'line': 1}]}",
                       i > 0 ? "," : "", (i + 1) * 512, i % 2 ? "s" : "l");
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "]]}");
    struct tarn_snapshot *snapshot = report_parse(json);
    const struct report_asked asked = {
        snapshot, {.struct_size = sizeof asked.options, .suppressions = suppressions, .parts = 10}};
    char *out = report_text(leaks, &asked);

    assert_non_null(strstr(out, "l.py:1:f\n"));
    assert_null(strstr(out, "s.py"));
    assert_non_null(strstr(out, "        20                       suppressed\n"));
    free(out);
    tarn_suppressions_destroy(suppressions);
    tarn_snapshot_destroy(snapshot);
}

static void nothing_to_go_by(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0}]]}");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_leaks_result *result = compute(&asked);

    (void)state;
    assert_int_equal(result->points_by, TARN_LEAK_POINTS_GUESSED);
    assert_int_equal(result->point_count, 1);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
}

/* More stacks than the table has room for from the beginning; one of them leaks. */
static void many_stacks(void **state)
{
    enum {
        COUNT = 10000
    };
    char *json = malloc(COUNT * 256 + 512);
    size_t used = (size_t)snprintf(json, 64, "{'segments': [], 'device_traces': [[");

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        used +=
            (size_t)snprintf(json + used, 256,
                             "%s{'action': 'alloc', 'addr': %d, 'size': 100, 'stream': 0, 'frames':"
                             " [{'name': 'f', 'filename': 'a.py', 'line': %d}]}",
                             i > 0 ? "," : "", (i + 1) * 512, i % 2 ? 1 : i);
    }
    (void)snprintf(json + used, 256, "]]}");
    struct tarn_snapshot *snapshot = report_parse(json);
    const struct tarn_report_options options = {.struct_size = sizeof options, .parts = 10};
    struct tarn_leaks_result *result;
    size_t count;

    assert_int_equal(tarn_leaks_compute(snapshot, &options, &result, &count, NULL), TARN_OK);
    assert_int_equal(result->leak_count, 1);
    assert_string_equal(result->rows[0].group.text, "a.py:1:f");
    assert_int_equal(result->rows[0].blocks, COUNT / 2);
    assert_int_equal(result->other_count, COUNT / 2);
    assert_int_equal(result->total.last, COUNT * 100);
    tarn_report_destroy(result);
    tarn_snapshot_destroy(snapshot);
    free(json);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    report_leaves_nothing(leaks, "cudagraph", 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steady_growth_is_found_one_jump_is_not),
        cmocka_unit_test(without_steps_a_stack_that_repeats_tells),
        cmocka_unit_test(suppressed_stacks_are_said),
        cmocka_unit_test(nothing_to_go_by),
        cmocka_unit_test(suppressed_stacks_have_a_row),
        cmocka_unit_test(many_stacks),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
