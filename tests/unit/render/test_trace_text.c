/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

struct asked {
    const struct tarn_snapshot *snapshot;
    struct tarn_trace_text_options options;
};

static enum tarn_status trace(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct asked *asked = context;

    return tarn_report_trace(asked->snapshot, &asked->options, writer, error);
}

static const struct tarn_trace_text_options compat = {.struct_size = sizeof compat, .compat = true};

static void goldens_in_the_compatible_form(void **state)
{
    static const char *const names[] = {"tiny",        "cudagraph",      "gpt2_varlen_expandable",
                                        "multistream", "llama_generate", "oom"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char golden_name[128];
        struct tarn_snapshot *snapshot = report_load(names[i]);
        const struct asked asked = {snapshot, compat};

        (void)snprintf(golden_name, sizeof golden_name, "snapshots/%s.trace.txt.gz", names[i]);
        struct test_file golden = test_file_read(golden_name);
        report_says(trace, &asked, (char *)golden.bytes);
        free(golden.bytes);
        tarn_snapshot_destroy(snapshot);
    }
}

static const char *last_line(const char *text)
{
    const char *at = text + strlen(text) - 1;

    while (at > text && at[-1] != '\n') {
        at--;
    }
    return at;
}

/* Expected are requested_bytes.all.current of the runs. */
static void the_total_is_what_is_in_use(void **state)
{
    static const struct {
        const char *name;
        const char *total;
    } cases[] = {
        {"tiny", "TOTAL MEM: 12.0MiB\n"},
        {"cudagraph", "TOTAL MEM: 427.6MiB\n"},
        {"oom", "TOTAL MEM: 65.0MiB\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tarn_snapshot *snapshot = report_load(cases[i].name);
        const struct asked asked = {snapshot, {.struct_size = sizeof asked.options}};
        char *text = report_text(trace, &asked);

        assert_string_equal(last_line(text), cases[i].total);
        free(text);
        tarn_snapshot_destroy(snapshot);
    }
}

/* The example of the description of PyTorch's tool, and its text. */
static void every_kind_of_entry(void **state)
{
    static const char json[] =
        "{'segments': [{'address': 139637976727552, 'total_size': 2097152, 'allocated_size': 1536,"
        "  'stream': 0, 'device': 0, 'blocks': [{'size': 2097152, 'state': 'inactive'}]},"
        " {'address': 139638245163008, 'total_size': 94371840, 'allocated_size': 62914560,"
        "  'stream': 12, 'device': 0, 'blocks': [{'size': 94371840, 'state': 'inactive'}]}],"
        "'device_traces': [[], ["
        "{'action': 'segment_alloc', 'addr': 139638513598464, 'size': 20971520, 'stream': 0},"
        "{'action': 'alloc', 'addr': 139638513598464, 'size': 5242880, 'stream': 0},"
        "{'action': 'alloc', 'addr': 139638245163008, 'size': 300, 'stream': 0},"
        "{'action': 'alloc', 'addr': 42, 'size': 1536, 'stream': 0},"
        "{'action': 'free_requested', 'addr': 139638513598464, 'size': 5242880, 'stream': 0},"
        "{'action': 'free_completed', 'addr': 139638513598464, 'size': 5242880, 'stream': 0},"
        "{'action': 'free_requested', 'addr': 77, 'size': 512, 'stream': 0},"
        "{'action': 'segment_free', 'addr': 139638513598464, 'size': 20971520, 'stream': 0},"
        "{'action': 'oom', 'device_free': 123456789, 'size': 1073741824, 'stream': 0},"
        "{'action': 'snapshot', 'addr': 0, 'size': 4096, 'stream': 0, 'time_us': 6}]]}";
    static const char lines[] = "Device 1 ----------------\n"
                                "10 entries\n"
                                "a = cudaMalloc(139638513598464, 20.0MiB)\n"
                                "b = a[0:5.0MiB]\n"
                                "c = seg_1[0:300.0B]\n"
                                "d = MEM[42:1.5KiB]\n"
                                "del b # 5.0MiB\n"
                                "# free completed for b 5.0MiB\n"
                                "del 77 # 512.0B\n"
                                "cudaFree(a) # 20.0MiB\n"
                                "raise OutOfMemoryError # 1.0GiB requested, 117.7MiB free in CUDA\n"
                                "{'action': 'snapshot', 'addr': 0, 'size': 4096, 'stream': 0, "
                                "'time_us': 6}\n";
    char expected[sizeof lines + 64];
    struct tarn_snapshot *snapshot = report_parse(json);
    struct asked asked = {snapshot, compat};

    (void)state;
    (void)snprintf(expected, sizeof expected, "%sTOTAL MEM: 9.0B", lines);
    report_says(trace, &asked, expected);
    asked.options.compat = false; /* what the trace left, 300 and 1536 bytes */
    (void)snprintf(expected, sizeof expected, "%sTOTAL MEM: 1.8KiB\n", lines);
    report_says(trace, &asked, expected);
    asked.options.one_device = true;
    asked.options.device = 1;
    report_says(trace, &asked, expected);
    tarn_snapshot_destroy(snapshot);
}

static void hostile_text_is_escaped(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'annotate', 'addr': 18446744073709551615,"
        " 'size': 1, 'stream': 0, 'user_metadata': '\\u001b[31m\\u202e\\n'},"
        "{'action': 'alloc', 'addr': 18446744073709551615, 'size': 2, 'stream': 0}]]}");
    const struct asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    report_says(trace, &asked,
                "Device 0 ----------------\n2 entries\n"
                "# annotate 18446744073709551615: \\x1b[31m\\u202e\\x0a\n"
                "a = MEM[18446744073709551615:2.0B]\nTOTAL MEM: 2.0B\n");
    tarn_snapshot_destroy(snapshot);
}

/* Under the name that the memory has; without a note, or with one of another kind, as a dict. */
static void annotations_name_what_they_are_about(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [["
        "{'action': 'alloc', 'addr': 64, 'size': 512, 'stream': 0},"
        "{'action': 'annotate', 'addr': 64, 'size': 512, 'stream': 0, 'user_metadata': 'a note'},"
        "{'action': 'annotate', 'addr': 64, 'size': 512, 'stream': 0, 'user_metadata': 7},"
        "{'action': 'annotate', 'addr': 64, 'size': 512, 'stream': 0}]]}");
    const struct asked asked = {snapshot, compat};

    (void)state;
    report_says(trace, &asked,
                "Device 0 ----------------\n4 entries\n"
                "a = MEM[64:512.0B]\n"
                "# annotate a: a note\n"
                "{'action': 'annotate', 'addr': 64, 'size': 512, 'stream': 0, 'user_metadata': 7}\n"
                "{'action': 'annotate', 'addr': 64, 'size': 512, 'stream': 0}\n"
                "TOTAL MEM: 3.0B");
    tarn_snapshot_destroy(snapshot);
}

/* As Python prints them: a tuple of one has a comma. */
static void values_are_written_as_python_does(void **state)
{
    static const char bytes[] =
        "\x80\x04}(\x8c\x08segments]\x8c\x0d"
        "device_traces](](}(\x8c\x06"
        "action\x8c\x08snapshot"
        "\x8c\x04"
        "addrK\0\x8c\x04sizeK\1\x8c\x06streamK\0\x8c\x01xK\7\x85\x8c\x01yK\7N\x86\x8c\x01z)"
        "\x8c\x01t\x88\x8c\x01"
        "f\x89ueeu.";
    struct tarn_snapshot *snapshot;
    struct tarn_error error = {.text = ""};

    (void)state;
    if (tarn_snapshot_load_memory(bytes, sizeof bytes - 1, NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    const struct asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    report_says(trace, &asked,
                "Device 0 ----------------\n1 entries\n"
                "{'action': 'snapshot', 'addr': 0, 'size': 1, 'stream': 0, 'x': (7,), "
                "'y': (7, None), 'z': (), 't': True, 'f': False}\nTOTAL MEM: 0.0B\n");
    tarn_snapshot_destroy(snapshot);
}

/* The stack of an event, for other reports; of one that is not there it is said. */
static void stacks_of_events(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 1,"
        " 'stream': 0, 'frames': [{'name': 'f', 'filename': 'a.py', 'line': 3}]}]]}");
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};

    (void)state;
    assert_int_equal(tarn_report_stack(snapshot, 0, 0, &writer), TARN_OK);
    assert_string_equal(collect.text, "a.py:3:f");
    assert_int_equal(tarn_report_stack(snapshot, 0, 1, &writer), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_report_stack(snapshot, 1, 0, &writer), TARN_ERR_NOT_FOUND);
    assert_int_equal(tarn_report_stack(snapshot, -1, 0, &writer), TARN_ERR_NOT_FOUND);
    assert_string_equal(collect.text, "a.py:3:f");
    free(collect.text);
    tarn_snapshot_destroy(snapshot);
}

static void no_trace_is_an_error(void **state)
{
    struct tarn_snapshot *list = report_parse(
        "[{'address': 1, 'total_size': 2, 'blocks': [{'size': 2, 'state': 'inactive'}]}]");
    struct tarn_snapshot *tiny = report_load("tiny");
    struct tarn_snapshot *before = report_load("tiny.before");
    const struct asked empty = {before, compat};
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    const struct tarn_trace_text_options other = {
        .struct_size = sizeof other, .one_device = true, .device = 3};
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_report_trace(list, NULL, &writer, &error), TARN_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "no trace"));
    assert_int_equal(tarn_report_trace(tiny, &other, &writer, &error), TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "device 3"));
    assert_int_equal(tarn_report_trace(before, NULL, &writer, &error), TARN_ERR_NOT_SUPPORTED);
    assert_null(collect.text);
    report_says(trace, &empty, "");
    tarn_snapshot_destroy(before);
    tarn_snapshot_destroy(tiny);
    tarn_snapshot_destroy(list);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_load("cudagraph");
    const struct asked asked = {snapshot, compat};

    (void)state;
    assert_true(report_fails_cleanly(trace, &asked) >= 5);
    report_is_refused(trace, &asked);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens_in_the_compatible_form),
        cmocka_unit_test(the_total_is_what_is_in_use),
        cmocka_unit_test(every_kind_of_entry),
        cmocka_unit_test(hostile_text_is_escaped),
        cmocka_unit_test(annotations_name_what_they_are_about),
        cmocka_unit_test(values_are_written_as_python_does),
        cmocka_unit_test(stacks_of_events),
        cmocka_unit_test(no_trace_is_an_error),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
