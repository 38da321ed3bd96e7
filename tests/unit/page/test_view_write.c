/* SPDX-License-Identifier: MIT */
/* Pages as a whole; what is in their sections is looked at in a browser by tests/viewer. */
#include "support/report.h"

#include "analysis/category.h"
#include "page/view_write.h"
#include "tarn/findings.h"
#include "tarn/replay.h"
#include "tarn/viewer.h"

struct asked {
    const struct tarn_snapshot *snapshot;
    struct tarn_view_options options;
};

static enum tarn_status page(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct asked *asked = context;

    return tarn_view_write(asked->snapshot, &asked->options, writer, error);
}

static struct asked asked_for(const struct tarn_snapshot *snapshot)
{
    return (struct asked){snapshot, {.struct_size = sizeof(struct tarn_view_options)}};
}

/* Every script element but the last is data, and the policy allows one script and one style. */
static void check_form(const char *text)
{
    const char *policy = strstr(text, "Content-Security-Policy");
    const char *program = strstr(text, "<script type=\"module\">");

    assert_int_equal(strncmp(text, "<!DOCTYPE html>", 15), 0);
    assert_non_null(policy);
    assert_non_null(strstr(policy, "default-src 'none'; script-src 'sha256-"));
    assert_null(strstr(text, "unsafe-inline"));
    assert_non_null(program);
    assert_null(strstr(program + 1, "<script"));
    assert_non_null(strstr(text, "data-name=\"head\""));
    assert_null(strstr(text, "http://"));
    assert_null(strstr(text, "https://"));
}

static void pages_are_whole_and_the_same_each_time(void **state)
{
    static const char *const names[] = {
        "tiny", "oom", "cudagraph", "multistream", "gpt2_varlen_expandable", "llama_generate"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct tarn_snapshot *snapshot = report_load(names[i]);
        const struct asked asked = asked_for(snapshot);
        char *first = report_text(page, &asked);
        char *second = report_text(page, &asked);

        check_form(first);
        assert_string_equal(first, second);
        free(first);
        free(second);
        tarn_snapshot_destroy(snapshot);
    }
}

static void titles_do_not_become_markup(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    struct asked asked = asked_for(snapshot);

    (void)state;
    asked.options.title = "</title><script>alert(1)</script>";
    char *text = report_text(page, &asked);

    check_form(text);
    assert_null(strstr(text, "alert(1)</script>"));
    assert_non_null(strstr(text, "<title>&lt;/title&gt;"));
    free(text);
    asked.options.title = "";
    text = report_text(page, &asked);
    assert_non_null(strstr(text, "<title>GPU memory</title>"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* Without a trace, with nothing, with devices far apart, with pinned memory. */
static void odd_files_have_a_page(void **state)
{
    static const char *const files[] = {
        "[]",
        "{'segments': [], 'device_traces': []}",
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 18446744073709551615,"
        " 'size': 18446744073709551615, 'stream': 0}, {'action': 'free_completed', 'addr': 0,"
        " 'size': 1, 'stream': 18446744073709551615}]]}",
        "{'segments': [{'device': 2147483647, 'address': 1, 'total_size': 4, 'blocks':"
        " [{'size': 4, 'requested_size': 2, 'state': 'active_pending_free'}]},"
        " {'device': 0, 'address': 9, 'total_size': 1, 'blocks': []}], 'device_traces': []}",
        "{'segments': [], 'device_traces': [[{'action': 'whatever', 'addr': 1, 'size': 0,"
        " 'stream': 0, 'user_metadata': 'x', 'time_us': -5}]], 'host_segments': [],"
        " 'host_traces': [[{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0}]],"
        " 'external_annotations': [{'stage': 'START', 'name': 'a', 'time_us': 3}]}",
        /* entries that mean nothing here, frees without an end, or of another place */
        "{'segments': [], 'device_traces': [["
        "{'action': 'user_defined', 'addr': 1, 'size': 0, 'stream': 0},"
        "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0, 'frames': []},"
        "{'action': 'free_requested', 'addr': 512, 'size': 9, 'stream': 0, 'frames':"
        " [{'filename': 'C:\\\\d\\\\a.py', 'line': 1, 'name': 'f'},"
        "  {'filename': 'b.py', 'line': 2, 'name': 'g'}, {'filename': '', 'line': 3, 'name': ''},"
        "  {'filename': 'd/', 'line': 3, 'name': 'h'}]},"
        "{'action': 'free_completed', 'addr': 512, 'size': 9, 'stream': 0, 'frames': []},"
        "{'action': 'free_completed', 'addr': 4096, 'size': 0, 'stream': 0},"
        "{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': 0},"
        "{'action': 'free_requested', 'addr': 512, 'size': 9, 'stream': 0}]],"
        " 'external_annotations': [{'stage': '', 'name': '', 'time_us': 3}]}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct tarn_snapshot *snapshot = report_parse(files[i]);
        const struct asked asked = asked_for(snapshot);
        char *text = report_text(page, &asked);

        check_form(text);
        free(text);
        tarn_snapshot_destroy(snapshot);
    }
}

static void one_device_can_be_asked_for(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    struct asked asked = asked_for(snapshot);
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    (void)state;
    asked.options.one_device = true;
    free(report_text(page, &asked));
    asked.options.device = 1;
    assert_int_equal(page(&asked, &writer, &error), TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "nothing of device 1"));
    assert_null(collect.text);
    tarn_snapshot_destroy(snapshot);
}

static void too_many_devices_are_refused(void **state)
{
    enum {
        DEVICES = 257,
        ROOM = 96
    };
    char *json = malloc((size_t)(DEVICES + 1) * ROOM);
    size_t used = 0;

    (void)state;
    assert_non_null(json);
    used += (size_t)snprintf(json, ROOM, "{'device_traces': [], 'segments': [");
    for (int i = 0; i < DEVICES; i++) {
        used += (size_t)snprintf(json + used, ROOM,
                                 "%s{'device': %d, 'address': %d, 'total_size': 1, 'blocks': []}",
                                 i > 0 ? "," : "", i, i);
    }
    (void)snprintf(json + used, ROOM, "]}");
    struct tarn_snapshot *snapshot = report_parse(json);
    struct asked asked = asked_for(snapshot);
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    assert_int_equal(page(&asked, &writer, &error), TARN_ERR_LIMIT);
    assert_non_null(strstr(error.text, "more than 256 devices"));
    asked.options.one_device = true;
    free(report_text(page, &asked));
    tarn_snapshot_destroy(snapshot);
    used = (size_t)snprintf(json, ROOM, "{'segments': [], 'device_traces': [");
    for (int i = 0; i < DEVICES; i++) {
        used += (size_t)snprintf(json + used, ROOM,
                                 "%s[{'action': 'alloc', 'addr': 1, 'size': 1,"
                                 " 'stream': 0}]",
                                 i > 0 ? "," : "");
    }
    (void)snprintf(json + used, ROOM, "]}");
    snapshot = report_parse(json);
    asked = asked_for(snapshot);
    assert_int_equal(page(&asked, &writer, &error), TARN_ERR_LIMIT);
    assert_non_null(strstr(error.text, "more than 256 devices"));
    tarn_snapshot_destroy(snapshot);
    free(json);
}

/* A page that must be small leaves out the oldest entries, and never grows beyond its limit. */
static void limits_hold(void **state)
{
    struct tarn_snapshot *snapshot = report_load("gpt2_varlen");
    struct asked asked = asked_for(snapshot);
    char *whole = report_text(page, &asked);
    const size_t size = strlen(whole);
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    (void)state;
    asked.options.max_bytes = size;
    char *same = report_text(page, &asked);

    assert_string_equal(same, whole);
    free(same);
    for (size_t less = 1; less <= 60000; less += 19999) {
        asked.options.max_bytes = size - less;
        char *text = report_text(page, &asked);

        assert_in_range(strlen(text), size / 3, size - less);
        check_form(text);
        free(text);
    }
    asked.options.max_bytes = 50000;
    assert_int_equal(page(&asked, &writer, &error), TARN_ERR_LIMIT);
    assert_non_null(strstr(error.text, "does not fit into 50000 bytes"));
    free(whole);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* A snapshot of a trace with `count` events in no order, and pages of a segment. */
static struct tarn_snapshot *long_trace(size_t count)
{
    static const char head[] =
        "\x80\x04}(\x8c\x08segments](}(\x8c\x07"
        "addressJ\0\0\x20\0\x8c\x0a"
        "total_sizeJ\0\0\x20\0\x8c\x06"
        "blocks]\x8c\x0atarn_pages}(\x8c\x09page_sizeJ\0\0\x20\0\x8c\x07handles](K\7e"
        "\x8c\x05times](K\1euue\x8c\x0d"
        "device_traces](](";
    static const char entry[] = "}(\x8c\x06"
                                "action\x8c\x03oom\x8c\x0b"
                                "device_freeK\0\x8c\x04sizeM";
    static const char rest[] = "\x8c\x06streamK\0u\x94";
    enum {
        KINDS = 200
    };
    const struct tarn_read_limits limits = {.struct_size = sizeof limits,
                                            .max_memory = (uint64_t)1 << 30};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.text = ""};
    char *bytes = malloc(sizeof head + KINDS * (sizeof entry + sizeof rest + 2) + 2 * count + 8);
    size_t used = sizeof head - 1;
    uint32_t seed = 1;

    assert_non_null(bytes);
    memcpy(bytes, head, used);
    for (int i = 0; i < KINDS; i++) {
        memcpy(bytes + used, entry, sizeof entry - 1);
        used += sizeof entry - 1;
        bytes[used++] = (char)i;
        bytes[used++] = 1;
        memcpy(bytes + used, rest, sizeof rest - 1);
        used += sizeof rest - 1;
    }
    for (size_t i = KINDS; i < count; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[used++] = 'h';
        bytes[used++] = (char)((seed >> 16) % KINDS);
    }
    memcpy(bytes + used, "eeu.", 5);
    if (tarn_snapshot_load_memory(bytes, used + 4, &limits, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    free(bytes);
    return snapshot;
}

/* Entries come in pieces; a writer that refuses one gets no other. */
static void long_traces_come_in_pieces(void **state)
{
    struct tarn_snapshot *snapshot = long_trace((1 << 18) + 10);
    const struct asked asked = asked_for(snapshot);
    char *text = report_text(page, &asked);
    const char *second = strstr(text, "data-name=\"d0.trace.1\"");
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};

    (void)state;
    assert_non_null(strstr(text, "data-name=\"d0.pages\""));
    assert_non_null(second);
    assert_null(strstr(text, "data-name=\"d0.trace.2\""));
    collect.room = (size_t)(strstr(text, "data-name=\"d0.trace.0\"") - text);
    assert_int_equal(page(&asked, &writer, NULL), TARN_ERR_IO);
    free(collect.text);
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void longer_traces_fail_cleanly(void **state)
{
    struct tarn_snapshot *snapshot = long_trace(9000);
    const struct asked asked = asked_for(snapshot);

    (void)state;
    assert_true(report_fails_or_copes(page, &asked) > 40);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Of a cut page blocks may have lasted from before the trace, and the first event may be one's. */
static void cut_pages_have_blocks_from_before(void **state)
{
    enum {
        COUNT = 400
    };
    char *json = malloc(COUNT * 160 + 1024);
    size_t used = (size_t)snprintf(
        json, 1024,
        "{'segments': [{'address': 1048576, 'total_size': 2097152, 'blocks': [{'size': 512,"
        " 'requested_size': 5, 'state': 'active_allocated', 'frames': [{'name': 'f', 'filename':"
        " 'a.py', 'line': 3}]}, {'size': 2096640, 'state': 'inactive'}]}], 'device_traces': [["
        "{'action': 'annotate', 'addr': 4096, 'size': 8, 'stream': 0, "
        "'user_metadata': 'was there'},"
        "{'action': 'free_requested', 'addr': 8192, 'size': 8, 'stream': 0}");

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        used += (size_t)snprintf(json + used, 160,
                                 ",{'action': '%s', 'addr': %d, 'size': %d, 'stream': 0,"
                                 " 'time_us': %d}",
                                 i % 2 ? "free_completed" : "alloc", 16384 + i / 2 * 512,
                                 i / 2 * 7919 % 500 + 1, 1000 + i * i);
    }
    (void)snprintf(json + used, 512,
                   ",{'action': 'free_requested', 'addr': 4096, 'size': 8, 'stream': 0},"
                   "{'action': 'free_completed', 'addr': 4096, 'size': 8, 'stream': 0},"
                   "{'action': 'free_completed', 'addr': 8192, 'size': 8, 'stream': 0}]]}");
    struct tarn_snapshot *snapshot = report_parse(json);
    struct asked asked = asked_for(snapshot);
    char *whole = report_text(page, &asked);

    asked.options.max_bytes = strlen(whole) - 200;
    char *cut = report_text(page, &asked);

    check_form(cut);
    assert_true(strlen(cut) <= asked.options.max_bytes);
    assert_true(report_fails_or_copes(page, &asked) > 40);
    free(cut);
    free(whole);
    tarn_snapshot_destroy(snapshot);
    free(json);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    struct asked asked = asked_for(snapshot);

    (void)state;
    assert_true(report_fails_cleanly(page, &asked) > 20);
    report_is_refused(page, &asked);
    asked.options.max_bytes = 1 << 20;
    assert_true(report_fails_cleanly(page, &asked) > 20);
    report_is_refused(page, &asked);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Of blocks that a cut page begins with it needs what was said of them, and of steps. */
static void labels_of_cut_pages_fail_cleanly(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [], 'device_traces': [[{'action': 'alloc', 'addr': 512, 'size': 9, 'stream': "
        "0, 'time_us': 1}, {'action': 'alloc', 'addr': 1024, 'size': 9, 'stream': 0, 'time_us': 2},"
        "{'action': 'annotate', 'addr': 512, 'size': 9, 'stream': 0, 'user_metadata': 'Net.a'},"
        "{'action': 'annotate', 'addr': 512, 'size': 9, 'stream': 0, 'user_metadata': 'Net.b'},"
        "{'action': 'annotate', 'addr': 4096, 'size': 9, 'stream': 0, 'user_metadata': 'Net.c'},"
        "{'action': 'alloc', 'addr': 2048, 'size': 77, 'stream': 7, 'time_us': 1000000},"
        "{'action': 'alloc', 'addr': 65536, 'size': 123, 'stream': 8, 'time_us': 3000000}]],"
        "'external_annotations': [{'stage': 'START', 'name': 'ProfilerStep#1', 'time_us': 2},"
        "{'stage': 'END', 'name': 'ProfilerStep#1', 'time_us': 1000000}]}");
    struct asked asked = asked_for(snapshot);
    char *whole = report_text(page, &asked);

    (void)state;
    asked.options.max_bytes = strlen(whole) - 1;
    char *cut = report_text(page, &asked);

    assert_true(strlen(cut) < strlen(whole));
    assert_true(report_fails_cleanly(page, &asked) > 20);
    free(cut);
    free(whole);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void rules_of_ones_own_are_used(void **state)
{
    static const char own[] = "everything: .\n";
    struct tarn_snapshot *snapshot = report_load("tiny");
    struct asked asked = asked_for(snapshot);
    struct tarn_rules *rules;
    struct tarn_error error;
    char *by_default = report_text(page, &asked);

    (void)state;
    assert_int_equal(tn_rules_parse(own, sizeof own - 1, "own", &rules, &error), TARN_OK);
    asked.options.rules = rules;
    char *text = report_text(page, &asked);

    check_form(text);
    assert_string_not_equal(text, by_default);
    assert_true(report_fails_cleanly(page, &asked) > 20);
    free(text);
    free(by_default);
    tarn_rules_destroy(rules);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- two recordings ---- */

struct pair_asked {
    struct tarn_view_run runs[2];
    struct tarn_view_options options;
};

static enum tarn_status pair_page(const void *context, const struct tarn_writer *writer,
                                  struct tarn_error *error)
{
    const struct pair_asked *asked = context;

    return tarn_view_write_runs(asked->runs, 2, &asked->options, writer, error);
}

static struct pair_asked asked_for_pair(struct tarn_snapshot *before, struct tarn_snapshot *after)
{
    return (struct pair_asked){
        {{.struct_size = sizeof(struct tarn_view_run), .snapshot = before, .name = "b<1>"},
         {.struct_size = sizeof(struct tarn_view_run), .snapshot = after}},
        {.struct_size = sizeof(struct tarn_view_options)}};
}

static void two_recordings_are_two_sets_of_sections(void **state)
{
    struct tarn_snapshot *before = report_load("tiny");
    struct tarn_snapshot *after = report_load("oom");
    struct pair_asked asked = asked_for_pair(before, after);
    uint64_t dropped = 1;

    (void)state;
    asked.options.dropped_out = &dropped;
    char *whole = report_text(pair_page, &asked);

    check_form(whole);
    assert_non_null(strstr(whole, "data-name=\"after.head\""));
    assert_non_null(strstr(whole, "data-name=\"after.d0.trace.0\""));
    assert_int_equal(dropped, 0);
    asked.options.max_bytes = strlen(whole) - 1000;
    char *cut = report_text(pair_page, &asked);

    assert_true(strlen(cut) <= asked.options.max_bytes);
    assert_true(dropped > 0);
    free(cut);
    free(whole);
    tarn_snapshot_destroy(after);
    tarn_snapshot_destroy(before);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void pairs_fail_cleanly(void **state)
{
    struct tarn_snapshot *before = report_load("tiny");
    struct tarn_snapshot *after = report_load("tiny");
    struct pair_asked asked = asked_for_pair(before, after);

    (void)state;
    for (int redact = TARN_VIEW_REDACT_NOTHING; redact <= TARN_VIEW_REDACT_ALL; redact++) {
        asked.options.redact = (enum tarn_view_redact)redact;
        assert_true(report_fails_cleanly(pair_page, &asked) > 20);
        report_is_refused(pair_page, &asked);
    }
    tarn_snapshot_destroy(after);
    tarn_snapshot_destroy(before);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void pairs_need_both(void **state)
{
    struct tarn_snapshot *some = report_load("tiny");
    struct tarn_snapshot *none = report_parse("{'segments': [], 'device_traces': []}");
    struct pair_asked asked = asked_for_pair(some, none);
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    (void)state;
    assert_int_equal(pair_page(&asked, &writer, &error), TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "the second file has no segments"));
    asked = asked_for_pair(some, some);
    asked.options.one_device = true;
    asked.options.device = 7;
    assert_int_equal(pair_page(&asked, &writer, &error), TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "the first file has nothing of device 7"));
    for (size_t count = 0; count < 4; count += 3) {
        assert_int_equal(tarn_view_write_runs(asked.runs, count, NULL, &writer, &error),
                         TARN_ERR_INVALID_ARGUMENT);
    }
    assert_null(collect.text);
    tarn_snapshot_destroy(none);
    tarn_snapshot_destroy(some);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* A build has the reader or says that it has none. */
static enum tarn_status empty_page(const void *context, const struct tarn_writer *writer,
                                   struct tarn_error *error)
{
    (void)context;
    return tarn_view_write_empty(NULL, writer, error);
}

static void empty_pages_have_a_reader_or_are_refused(void **state)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;
    const enum tarn_status status = empty_page(NULL, &writer, &error);

    (void)state;
    if (status) {
        assert_int_equal(status, TARN_ERR_NOT_SUPPORTED);
        assert_non_null(strstr(error.text, "without its reader"));
        assert_null(collect.text);
        return;
    }
    free(collect.text);
    char *text = report_text(empty_page, NULL);

    assert_non_null(strstr(text, " 'wasm-unsafe-eval'"));
    assert_non_null(strstr(text, "data-name=\"reader\""));
    assert_null(strstr(text, "data-name=\"head\""));
    free(text);
    assert_true(report_fails_cleanly(empty_page, NULL) > 0);
    report_is_refused(empty_page, NULL);
}

/* With any bytes as the reader, in a build that has none. */
static enum tarn_status page_with_reader(const void *context, const struct tarn_writer *writer,
                                         struct tarn_error *error)
{
    return tn_view_write_reader(context, 9000, NULL, writer, error);
}

static void a_reader_is_a_section(void **state)
{
    static char reader[9000];
    struct tarn_error error;

    (void)state;
    for (size_t i = 0; i < sizeof reader; i++) {
        reader[i] = (char)(i * i >> 4);
    }
    char *text = report_text(page_with_reader, reader);

    assert_non_null(strstr(text, " 'wasm-unsafe-eval'"));
    assert_non_null(strstr(text, "data-name=\"reader\" data-size=\"9000\""));
    assert_null(strstr(text, "data-name=\"head\""));
    free(text);
    assert_true(report_fails_or_copes(page_with_reader, reader) > 4);
    report_is_refused(page_with_reader, reader);
    assert_int_equal(tn_view_write_reader("", 0, NULL, NULL, &error), TARN_ERR_NOT_SUPPORTED);
    assert_non_null(strstr(error.text, "without its reader"));
}

/* ---- answers ---- */

/* One of each, with texts that need an escape. */
static void answers_are_written_or_fail_cleanly(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    struct pair_asked asked = asked_for_pair(snapshot, snapshot);
    const struct tarn_tune_row rows[] = {
        {.conf = "a\"b", .ooms = 1}, {.conf = "c:1"}, {.conf = "a:1,b:2"}};
    const struct tarn_view_settings settings[] = {{.device = 0, .rows = rows, .count = 3},
                                                  {.device = 1, .missing = "why \"not\""}};
    const struct tarn_findings findings = {.count = 40, .text = {"one\n", "two"}};
    const struct tarn_frag_state frag_state = {.event = TARN_NONE, .reserved = 4};
    const struct tarn_frag_result frag = {.state_count = 1, .states = &frag_state};
    const struct tarn_step step = {.number = TARN_NONE, .growth = -1, .is_outlier = true};
    const struct tarn_steps_result steps = {.row_count = 1, .rows = &step};
    const struct tarn_oom_remedy remedy = {.conf = "a,b", .memory = 5};
    const struct tarn_oom_failure failure = {.event = 1, .since = TARN_NONE};
    const struct tarn_oom_result oom = {
        .remedy_count = 1, .remedies = &remedy, .oom_count = 1, .ooms = &failure};
    const struct tarn_view_answers answers = {.struct_size = sizeof answers,
                                              .settings = settings,
                                              .settings_count = 2,
                                              .ooms = &oom,
                                              .oom_count = 1,
                                              .frag = &frag,
                                              .frag_count = 1,
                                              .steps = &steps,
                                              .step_count = 1,
                                              .findings = &findings};

    (void)state;
    char *without = report_text(pair_page, &asked);

    asked.runs[0].answers = &answers;
    char *with = report_text(pair_page, &asked);

    check_form(with);
    assert_string_not_equal(with, without);
    assert_true(report_fails_cleanly(pair_page, &asked) > 20);
    free(with);

    /* Without texts: settings that a search combined may be the recording's own. */
    asked.options.redact = TARN_VIEW_REDACT_ALL;
    asked.runs[0].name = "";
    char *hidden = report_text(pair_page, &asked);

    check_form(hidden);
    asked.runs[0].answers = NULL;
    with = report_text(pair_page, &asked);
    assert_string_not_equal(with, hidden);
    free(hidden);
    free(with);
    free(without);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_whole_and_the_same_each_time),
        cmocka_unit_test(titles_do_not_become_markup),
        cmocka_unit_test(odd_files_have_a_page),
        cmocka_unit_test(one_device_can_be_asked_for),
        cmocka_unit_test(too_many_devices_are_refused),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(long_traces_come_in_pieces),
        cmocka_unit_test(longer_traces_fail_cleanly),
        cmocka_unit_test(cut_pages_have_blocks_from_before),
        cmocka_unit_test(failures_leave_nothing),
        cmocka_unit_test(labels_of_cut_pages_fail_cleanly),
        cmocka_unit_test(rules_of_ones_own_are_used),
        cmocka_unit_test(two_recordings_are_two_sets_of_sections),
        cmocka_unit_test(pairs_fail_cleanly),
        cmocka_unit_test(pairs_need_both),
        cmocka_unit_test(empty_pages_have_a_reader_or_are_refused),
        cmocka_unit_test(a_reader_is_a_section),
        cmocka_unit_test(answers_are_written_or_fail_cleanly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
