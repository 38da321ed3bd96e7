/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

struct asked {
    const struct tarn_snapshot *snapshot;
    struct tarn_report_options options;
    struct tarn_flame_at_options how;
};

static enum tarn_status flame(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct asked *asked = context;

    return tarn_report_flame_at(asked->snapshot, &asked->options, &asked->how, writer, error);
}

/* `a` holds 100 and then 30 more; `b` held 50 and gave them back; 7 without frames. */
static const char two[] = "{'segments': [], 'device_traces': [["
                          "{'action': 'alloc', 'addr': 512, 'size': 100, 'stream': 0, 'frames': ["
                          " {'name': 'in', 'filename': '/x/a.py', 'line': 1},"
                          " {'name': 'out', 'filename': '/x/m.py', 'line': 9}]},"
                          "{'action': 'alloc', 'addr': 1024, 'size': 50, 'stream': 3, 'frames': ["
                          " {'name': 'b', 'filename': '/x/b.py', 'line': 2}]},"
                          "{'action': 'alloc', 'addr': 4096, 'size': 7, 'stream': 0, 'frames': []},"
                          "{'action': 'free_completed', 'addr': 1024, 'size': 50, 'stream': 3},"
                          "{'action': 'alloc', 'addr': 2048, 'size': 30, 'stream': 0, 'frames': ["
                          " {'name': 'in', 'filename': '/x/a.py', 'line': 1},"
                          " {'name': 'out', 'filename': '/x/m.py', 'line': 9}]}]]}";

static void folded(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(two);
    struct tarn_selection selection = {.struct_size = sizeof selection};
    struct asked asked = {snapshot,
                          {.struct_size = sizeof asked.options, .selection = &selection},
                          {.struct_size = sizeof asked.how, .folded = true}};

    (void)state;
    report_says(flame, &asked, "m.py:9:out;a.py:1:in 100\nb.py:2:b 50\n(no frames) 7\n");
    asked.how.is_inverted = true;
    report_says(flame, &asked, "a.py:1:in;m.py:9:out 100\nb.py:2:b 50\n(no frames) 7\n");
    asked.options.by = TARN_BY_STREAM;
    selection.depth = 1;
    report_says(flame, &asked,
                "stream 0;a.py:1:in 100\nstream 3;b.py:2:b 50\nstream 0;(no frames) 7\n");
    asked.options.by = TARN_BY_STACK;
    asked.how.from = (struct tarn_instant){TARN_AT_EVENT, 1};
    report_says(flame, &asked, "a.py:1:in 30\n(no frames) 7\n");
    tarn_snapshot_destroy(snapshot);
}

static void pictures(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(two);
    struct tarn_selection selection = {.struct_size = sizeof selection, .size_min = 10};
    struct asked asked = {snapshot,
                          {.struct_size = sizeof asked.options, .selection = &selection},
                          {.struct_size = sizeof asked.how, .from = {TARN_AT_EVENT, 1}}};
    char *text = report_text(flame, &asked);

    (void)state;
    assert_non_null(strstr(text, "<title>GPU memory: what grew at event 4, without 50 B that "
                                 "shrank, without 7 B not selected</title>"));
    assert_non_null(strstr(text, "<rect x=\"10.00\" y=\"92\" width=\"1180.00\""));
    free(text);
    asked.how.root_below = true;
    text = report_text(flame, &asked);
    assert_non_null(strstr(text, "<rect x=\"10.00\" y=\"126\" width=\"1180.00\""));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void devices_are_told_apart(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [["
                     "{'action': 'alloc', 'addr': 512, 'size': 1, 'stream': 0}],["
                     "{'action': 'alloc', 'addr': 512, 'size': 2, 'stream': 0}]]}");
    struct asked asked = {snapshot,
                          {.struct_size = sizeof asked.options},
                          {.struct_size = sizeof asked.how, .folded = true}};
    struct tarn_error error;

    (void)state;
    report_says(flame, &asked, "device_0;(not recorded) 1\ndevice_1;(not recorded) 2\n");
    asked.options.one_device = true;
    asked.options.device = 1;
    report_says(flame, &asked, "(not recorded) 2\n");
    asked.how.folded = false;
    asked.how.root_below = true;
    free(report_text(flame, &asked));
    asked.how.from = (struct tarn_instant){TARN_AT_OOM, 1};
    assert_int_equal(flame(&asked, NULL, &error), TARN_ERR_NOT_FOUND);
    tarn_snapshot_destroy(snapshot);
}

/* A place is one part of a path, of at most 512 bytes, however it is named. */
static void places_have_any_name(void **state)
{
    char json[4096] = "{'segments': [], 'device_traces': [["
                      "{'action': 'alloc', 'addr': 512, 'size': 3, 'stream': 0,"
                      " 'user_metadata': 'a;b'},"
                      "{'action': 'alloc', 'addr': 1024, 'size': 5, 'stream': 0,"
                      " 'user_metadata': 'x";
    char expected[1024] = "a,b;(not recorded) 3\nx";

    (void)state;
    for (int i = 0; i < 400; i++) {
        (void)snprintf(json + strlen(json), sizeof json - strlen(json), "\xc3\xa9");
    }
    for (int i = 0; i < 255; i++) { /* with the first letter an odd number of bytes */
        (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "\xc3\xa9");
    }
    (void)snprintf(json + strlen(json), sizeof json - strlen(json), "'}]]}");
    (void)snprintf(expected + strlen(expected), sizeof expected - strlen(expected),
                   ";(not recorded) 5\n");
    struct tarn_snapshot *snapshot = report_parse(json);
    const struct asked asked = {snapshot,
                                {.struct_size = sizeof asked.options, .by = TARN_BY_METADATA},
                                {.struct_size = sizeof asked.how, .folded = true}};
    char *text = report_text(flame, &asked);

    assert_non_null(strstr(text, "a,b;(not recorded) 3\n"));
    assert_non_null(strstr(text, strchr(expected, '\n') + 1));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_load("cudagraph");
    struct asked asked = {snapshot,
                          {.struct_size = sizeof asked.options, .by = TARN_BY_SEGMENT},
                          {.struct_size = sizeof asked.how}};

    (void)state;
    assert_true(report_fails_cleanly(flame, &asked) >= 20);
    asked.how.folded = true;
    assert_true(report_fails_cleanly(flame, &asked) >= 10);
    report_is_refused(flame, &asked);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* More boxes than a piece of their array holds. */
static void many_boxes_leave_nothing(void **state)
{
    enum {
        COUNT = 1100
    };
    char *json = malloc(COUNT * 128 + 64);
    size_t used = (size_t)snprintf(json, 64, "{'segments': [], 'device_traces': [[");

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        used += (size_t)snprintf(json + used, 128,
                                 "%s{'action': 'alloc', 'addr': %d, 'size': 1, 'stream': 0,"
                                 " 'frames': [{'name': 'f', 'filename': 'a', 'line': %d}]}",
                                 i > 0 ? "," : "", i + 1, i);
    }
    (void)snprintf(json + used, 64, "]]}");
    struct tarn_snapshot *snapshot = report_parse(json);
    const struct asked asked = {
        snapshot, {.struct_size = sizeof asked.options}, {.struct_size = sizeof asked.how}};

    char *text = report_text(flame, &asked);

    assert_true(report_fails_or_copes(flame, &asked) >= 10);
    assert_non_null(strstr(text, "a:1098:f"));
    free(text);
    tarn_snapshot_destroy(snapshot);
    free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded),
        cmocka_unit_test(pictures),
        cmocka_unit_test(devices_are_told_apart),
        cmocka_unit_test(places_have_any_name),
        cmocka_unit_test(many_boxes_leave_nothing),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
