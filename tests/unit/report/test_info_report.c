/* SPDX-License-Identifier: MIT */
#include "support/pickle_out.h"
#include "support/report.h"

#include "tarn/report.h"

static enum tarn_status info(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_info(asked->snapshot, &asked->options, writer, error);
}

static void a_recorded_run(void **state)
{
    struct tarn_snapshot *snapshot = report_load("tiny");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    report_says(
        info, &asked,
        "a snapshot\n"
        "devices: 1, segments: 3, stacks: 2\n"
        "settings: (default)\n"
        "\n"
        "device 0\n"
        "  now: 52.00 MiB reserved in 3 segments, 12.00 MiB in 5 blocks allocated, 12.00 MiB of it "
        "requested\n"
        "  peak: 48.00 MiB allocated at event 10, 52.00 MiB reserved at event 9\n"
        "  trace: 21 events in 3.462 s, 6 per second\n"
        "           9  alloc\n"
        "           4  free_requested\n"
        "           4  free_completed\n"
        "           3  segment_alloc\n"
        "           1  snapshot\n"
        "  stacks: 20 of 20 events have one\n"
        "  the trace begins with an empty allocator\n");
    tarn_snapshot_destroy(snapshot);
}

#define SEGMENT(address, pages)                                                                    \
    "{'address': " address ", 'total_size': 4194304, 'device': 0, 'blocks': [{'size': 4194304,"    \
    " 'state': 'inactive'}], 'tarn_pages': " pages "}"

static void pages_that_moved_are_counted(void **state)
{
    struct tarn_snapshot *snapshot = report_parse("[" SEGMENT(
        "2097152",
        "{'page_size': 2097152, 'handles': [7, 9], 'times': "
        "[1, 3]}") ", " SEGMENT("8388608",
                                "{'page_size': 2097152, 'handles': [8, 18446744073709551615],"
                                " 'times': [1, 1]}") "]");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    char *text = report_text(info, &asked);

    (void)state;
    assert_non_null(strstr(text, "  pages: 4 of 2.00 MiB, 1 at an address that had another page "
                                 "before; mapped 6 times\n"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* Numbers that no counter reaches count as the largest one of 32 bits. */
static void a_page_is_not_mapped_without_end(void **state)
{
    struct tarn_snapshot *snapshot = report_parse("[" SEGMENT(
        "2097152",
        "{'page_size': 2097152, 'handles': [7, 8], 'times': [18446744073709551615, 1]}") "]");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    char *text = report_text(info, &asked);

    (void)state;
    assert_non_null(strstr(text, "had another page before; mapped 4294967296 times\n"));
    free(text);

    const struct report_asked json = {
        snapshot, {.struct_size = sizeof json.options, .format = TARN_REPORT_JSON}};

    text = report_text(info, &json);
    assert_non_null(strstr(text, "\"pages\": 2,"));
    assert_non_null(strstr(text, "\"moved_pages\": 1"));
    free(text);
    tarn_snapshot_destroy(snapshot);
    snapshot = report_parse(
        "[" SEGMENT("2097152", "{'page_size': 2097152, 'handles': [7, 8], 'times': [2, 2]}") "]");

    const struct report_asked both = {snapshot, {.struct_size = sizeof both.options}};

    text = report_text(info, &both);
    assert_non_null(strstr(text, "pages: 2 of 2.00 MiB, 2 at addresses that had another page "));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* Files come from anywhere. */
static void what_is_no_list_of_pages_is_passed_over(void **state)
{
    static const char *const wrong[] = {
        SEGMENT("0", "7"),
        SEGMENT("0", "[1, 2]"),
        SEGMENT("0", "{}"),
        SEGMENT("0", "{'page_size': 0, 'handles': [7], 'times': [1]}"),
        SEGMENT("0", "{'page_size': 'x', 'handles': [7], 'times': [1]}"),
        SEGMENT("0", "{'page_size': 2097152, 'handles': [7], 'times': [1, 2]}"),
        SEGMENT("0", "{'page_size': 2097152, 'handles': [7]}"),
        SEGMENT("0", "{'page_size': 2097152, 'handles': ['a'], 'times': [1]}"),
        SEGMENT("0", "{'page_size': 2097152, 'handles': {'a': 1}, 'times': [1]}"),
        SEGMENT("0", "{'page_size': 2097152, 'handles': [], 'times': []}"),
        SEGMENT("0", "{'page_size': 2097152, 'handles': 5, 'times': [1]}"),
    };

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char file[512];

        (void)snprintf(file, sizeof file, "[%s]", wrong[i]);
        struct tarn_snapshot *snapshot = report_parse(file);
        const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
        char *text = report_text(info, &asked);

        assert_non_null(strstr(text, "device 0\n"));
        assert_null(strstr(text, "pages:"));
        free(text);
        tarn_snapshot_destroy(snapshot);
    }
}

static void what_is_missing_is_said(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("[{'address': 1, 'total_size': 2, 'device': 5, 'blocks': [{'size': 2,"
                     " 'state': 'inactive'}], 'sur\\u001bprise': 1}]");
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    char *text = report_text(info, &asked);

    (void)state;
    assert_non_null(strstr(text, "a list of segments\ndevices: 1, segments: 1, stacks: 0\n"
                                 "settings: (not in the file)\n"));
    assert_non_null(strstr(text, "warning: "));
    assert_null(strchr(text, '\x1b'));
    assert_non_null(strstr(text, "\ndevice 5\n"));
    assert_non_null(strstr(text, "  no trace: history was not recorded\n"));
    free(text);
    asked.options.one_device = true;
    text = report_text(info, &asked);
    assert_null(strstr(text, "device 5"));
    free(text);
    tarn_snapshot_destroy(snapshot);

    snapshot = report_load("llama_generate");
    asked = (struct report_asked){snapshot, {.struct_size = sizeof asked.options}};
    text = report_text(info, &asked);
    assert_non_null(strstr(text, "  the trace begins mid-run: 722.00 MiB was reserved and 202 "
                                 "blocks of 535.24 MiB allocated before it\n"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

#define ONE_EVENT "[{'action': 'alloc', 'addr': 512, 'size': 512, 'stream': 0}]"

static void check_overflow(const char *flag, bool first, bool second)
{
    char text[1024];
    struct tarn_info_result *found = NULL;
    struct tarn_error error;

    (void)snprintf(text, sizeof text,
                   "{'segments': [], 'device_traces': [" ONE_EVENT ", " ONE_EVENT
                   "], 'allocator_settings': {'trace_alloc_overflowed': %s, "
                   "'trace_alloc_max_entries': 6}}",
                   flag);
    struct tarn_snapshot *snapshot = report_parse(text);

    assert_int_equal(tarn_info_compute(snapshot, NULL, &found, &error), TARN_OK);
    assert_int_equal(found->device_count, 2);
    assert_int_equal(found->devices[0].trace_overflowed, first);
    assert_int_equal(found->devices[1].trace_overflowed, second);
    assert_int_equal(found->trace_entries_max, 6);
    tarn_report_destroy(found);
    tarn_snapshot_destroy(snapshot);
}

/* One flag, or one per device, as versions of PyTorch write it. */
static void overflowed_traces_are_known(void **state)
{
    (void)state;
    check_overflow("true", true, true);
    check_overflow("false", false, false);
    check_overflow("[false, true]", false, true);
    check_overflow("[true]", true, false);
    check_overflow("{'1': true}", false, true);
    check_overflow("[]", false, false);
    check_overflow("null", false, false);
    check_overflow("'yes'", false, false);
}

static void an_overflow_is_warned_of(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [" ONE_EVENT
                     "], 'allocator_settings': {'trace_alloc_overflowed': true, "
                     "'trace_alloc_max_entries': 6}}");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    char *text = report_text(info, &asked);

    (void)state;
    assert_non_null(strstr(text, "  warning: the trace overflowed, its oldest events were dropped "
                                 "(it holds 6 at most); record with a larger max_entries\n"));
    assert_null(strstr(text, "in effect"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

/* Here a setting was requested that is not in effect. */
static void defaults_are_said_where_something_was_requested(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'allocator_settings': {"
                     "'PYTORCH_CUDA_ALLOC_CONF': 'max_split_size_mb:64', 'max_split_size': -1, "
                     "'expandable_segments': false, 'garbage_collection_threshold': 0.0}}");
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    char *text = report_text(info, &asked);

    (void)state;
    assert_non_null(strstr(text, "settings: max_split_size_mb:64\nin effect: (default)\n"));
    free(text);
    tarn_snapshot_destroy(snapshot);
    snapshot = report_parse("{'segments': [], 'allocator_settings': {"
                            "'PYTORCH_CUDA_ALLOC_CONF': '', 'max_split_size': -1, "
                            "'expandable_segments': false}}");
    asked.snapshot = snapshot;
    text = report_text(info, &asked);
    assert_null(strstr(text, "in effect"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void a_file_that_ends_early_has_no_trace(void **state)
{
    static struct pickle_out out;
    struct tarn_snapshot *snapshot = NULL;

    (void)state;
    pickle_begin(&out);
    pickle_dict(&out);
    pickle_text(&out, "segments");
    pickle_list(&out);
    pickle_dict(&out);
    pickle_item(&out, "address", 4096);
    pickle_item(&out, "total_size", 512);
    pickle_text(&out, "blocks");
    pickle_list(&out);
    pickle_dict(&out);
    pickle_item(&out, "size", 512);
    pickle_item_text(&out, "state", "inactive");
    pickle_dict_end(&out);
    pickle_list_end(&out);
    pickle_dict_end(&out);
    pickle_list_end(&out);
    pickle_text(&out, "device_traces");
    assert_int_equal(tarn_snapshot_load_memory(out.bytes, out.size, NULL, &snapshot, NULL),
                     TARN_ERR_TRUNCATED);
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    char *text = report_text(info, &asked);

    assert_non_null(strstr(text, "  no trace: the file ends before it\n"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void settings_in_effect_are_beside_those_requested(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'allocator_settings': {"
                     "'PYTORCH_CUDA_ALLOC_CONF': 'max_split_size_mb:64', 'max_split_size': -1, "
                     "'expandable_segments': true, 'garbage_collection_threshold': 0.5, "
                     "'pinned_num_register_threads': 1, 'release_lock_on_cudamalloc': false, "
                     "'mo\\u001bde': 'x', 'per_device': {'0': 1}}}");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    char *text = report_text(info, &asked);

    (void)state;
    assert_non_null(strstr(text, "settings: max_split_size_mb:64\nin effect: "
                                 "garbage_collection_threshold 0.5, expandable_segments True, "));
    assert_null(strchr(text, '\x1b'));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static struct tarn_info_result *info_of(const struct tarn_snapshot *snapshot)
{
    struct tarn_info_result *result;

    assert_int_equal(tarn_info_compute(snapshot, NULL, &result, NULL), TARN_OK);
    return result;
}

/* Whatever the kind of a value is, it has a text, and is on or not. */
static void settings_may_have_any_kind(void **state)
{
    static const struct {
        const char *name, *json, *text;
        bool is_on;
    } rows[] = {
        {"pinned_num_register_threads", "1", "1", false},
        {"pinned_num_register_threads", "4", "4", true},
        {"pinned_num_register_threads", "'8'", "8", true},
        {"pinned_num_register_threads", "true", "True", false},
        {"other", "18446744073709551615", "18446744073709551615", false},
        {"other", "null", "None", false},
        {"other", "''", "", false},
        {"other", "[{'name': 'f', 'filename': 'a.py', 'line': 1}]", "...", false},
        {"other", "{'name': 'f', 'filename': 'a.py', 'line': 1}", "...", false},
        {"other", "[1, [2]]", "...", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[256];
        bool found = false;

        (void)snprintf(json, sizeof json, "{'segments': [], 'allocator_settings': {'%s': %s}}",
                       rows[i].name, rows[i].json);
        struct tarn_snapshot *snapshot = report_parse(json);
        struct tarn_info_result *result = info_of(snapshot);

        for (size_t k = 0; k < result->in_effect_count; k++) {
            const struct tarn_info_setting *setting = &result->in_effect[k];

            if (strcmp(setting->name, rows[i].name) == 0) {
                found = true;
                assert_string_equal(setting->value, rows[i].text);
                assert_int_equal(setting->is_on, rows[i].is_on);
            }
        }
        assert_true(found);
        tarn_report_destroy(result);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Only a number above 0 says how many entries a trace may have. */
static void the_length_of_traces_is_a_number(void **state)
{
    static const struct {
        const char *json;
        uint64_t entries;
    } rows[] = {{"100000", 100000}, {"0", 0}, {"-1", 0}, {"'5'", 0}, {"0.5", 0}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char json[256];

        (void)snprintf(json, sizeof json,
                       "{'segments': [], 'allocator_settings': {'trace_alloc_max_entries': %s}}",
                       rows[i].json);
        struct tarn_snapshot *snapshot = report_parse(json);
        struct tarn_info_result *result = info_of(snapshot);

        assert_int_equal(result->trace_entries_max, rows[i].entries);
        tarn_report_destroy(result);
        tarn_snapshot_destroy(snapshot);
    }
}

/* Without the number of entries the warning does not say how many it holds. */
static void an_overflow_of_unknown_length(void **state)
{
    struct tarn_snapshot *snapshot =
        report_parse("{'segments': [], 'device_traces': [" ONE_EVENT
                     "], 'allocator_settings': {'trace_alloc_overflowed': true}}");
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    char *text = report_text(info, &asked);

    (void)state;
    assert_non_null(strstr(text, "warning: the trace overflowed, its oldest events were dropped; "
                                 "record with a larger max_entries\n"));
    free(text);
    tarn_snapshot_destroy(snapshot);
}

static void in_numbers(void **state)
{
    struct tarn_snapshot *snapshot = report_load("oom");
    struct tarn_info_result *info_found;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_info_compute(snapshot, NULL, &info_found, &error), TARN_OK);
    assert_string_equal(info_found->format, "a snapshot");
    assert_string_equal(info_found->settings,
                        "max_split_size_mb:128,garbage_collection_threshold:0.6");
    assert_int_equal(info_found->device_count, 1);
    const struct tarn_info_device *device = &info_found->devices[0];
    uint64_t failures = 0;

    assert_int_equal(device->events, 5841);
    assert_int_equal(device->blocks_before, 0);
    for (size_t i = 0; i < device->action_count; i++) {
        failures += strcmp(device->actions[i].name, "oom") == 0 ? device->actions[i].count : 0;
    }
    assert_int_equal(failures, 1);
    tarn_report_destroy(info_found);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    (void)state;
    report_leaves_nothing(info, "cudagraph", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recorded_run),
        cmocka_unit_test(pages_that_moved_are_counted),
        cmocka_unit_test(what_is_no_list_of_pages_is_passed_over),
        cmocka_unit_test(what_is_missing_is_said),
        cmocka_unit_test(overflowed_traces_are_known),
        cmocka_unit_test(an_overflow_is_warned_of),
        cmocka_unit_test(settings_in_effect_are_beside_those_requested),
        cmocka_unit_test(in_numbers),
        cmocka_unit_test(defaults_are_said_where_something_was_requested),
        cmocka_unit_test(a_file_that_ends_early_has_no_trace),
        cmocka_unit_test(an_overflow_of_unknown_length),
        cmocka_unit_test(a_page_is_not_mapped_without_end),
        cmocka_unit_test(settings_may_have_any_kind),
        cmocka_unit_test(the_length_of_traces_is_a_number),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
