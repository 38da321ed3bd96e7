/* SPDX-License-Identifier: MIT */
#include "support/collect.h"
#include "support/file.h"

#include "base/utf8.h"
#include "tarn/host.h"
#include "tarn/tracker.h"

#define ENTER                                                                                      \
    "{\"op\": \"pre_forward\", \"module\": \"M\", \"module_id\": 1, \"inputs\": [[1, 8, "          \
    "\"cpu\"], [null, 8, \"cpu\"], [77, 8, \"cpu\"]], \"in_backward\": false}\n"
#define CREATE "{\"op\": \"create\", \"storages\": [[1, 8, \"cpu\"]], \"category\": \"Other\"}\n"

static struct tarn_tracker *tracker;
static struct tarn_track_replay result;
static struct tarn_error error;

static enum tarn_status replay(const char *text)
{
    tarn_tracker_destroy(tracker);
    assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
    result = (struct tarn_track_replay){.struct_size = sizeof result};
    error = (struct tarn_error){0};
    return tarn_tracker_replay_memory(tracker, text, strlen(text), NULL, &result, &error);
}

static int close_all(void **state)
{
    (void)state;
    tarn_tracker_destroy(tracker);
    tracker = NULL;
    return tarn_host_get_usage().live_count != 0;
}

/* What PyTorch's result does not have, instead of its brace. */
#define HEAD                                                                                       \
    "{\"schema\": \"tarn.track/1\", \"tool\": {\"name\": \"tarn\", \"version\": "                  \
    "\"" TARN_VERSION_STRING "\"}, "

static void recorded_logs_replay(void **state)
{
    static const char *const names[] = {"conv_cpu", "mlp_cuda", "checkpointed_cuda"};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    char path[1024];
    char name[64];

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct test_collect collect = {0};
        const struct tarn_writer writer = {test_collect_write, &collect};

        tarn_tracker_destroy(tracker);
        assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
        result = (struct tarn_track_replay){.struct_size = sizeof result};
        (void)snprintf(path, sizeof path, "%s/tracker/%s.jsonl.gz", TEST_DATA_DIR, names[i]);
        assert_int_equal(tarn_tracker_replay_log(tracker, path, NULL, &result, &error), TARN_OK);
        assert_int_equal(result.differing, 0);
        assert_true(result.compared > 300);
        assert_int_equal(tarn_tracker_check(tracker, &findings), 0);
        (void)snprintf(name, sizeof name, "tracker/%s.result.json.gz", names[i]);
        struct test_file expected = test_file_read(name);

        assert_int_equal(tarn_tracker_write_json(tracker, false, &writer, NULL), TARN_OK);
        assert_int_equal(collect.text[--collect.size], '\n');
        collect.text[collect.size] = '\0';
        assert_memory_equal(collect.text, HEAD, sizeof HEAD - 1);
        assert_string_equal(collect.text + sizeof HEAD - 1, (const char *)expected.bytes + 1);
        free(collect.text);
        free(expected.bytes);
    }
}

static void a_new_module_waits_for_its_parameters(void **state)
{
    struct tarn_track_module module = {.struct_size = sizeof module};
    struct tarn_track_row row = {0};
    size_t count;

    (void)state;
    assert_int_equal(
        replay(ENTER "{\"op\": \"classify\", \"storages\": [[1, 8, \"cpu\"]], \"category\": "
                     "\"Parameter\"}\n"
                     "{\"op\": \"classify\", \"storages\": [[2, 5, \"cpu\"], [3, 6, \"cpu\"]], "
                     "\"category\": \"Buffer\"}\n"
                     "{\"op\": \"classify\", \"storages\": [[4, 100, \"cpu\"]], \"category\": "
                     "\"Other\"}\n"
                     "{\"op\": \"mark\"}\n"),
        TARN_OK);
    assert_int_equal(tarn_tracker_get_module(tracker, 0, &module), TARN_OK);
    assert_int_equal(module.parameter_bytes, 8);
    assert_int_equal(module.buffer_bytes, 11);
    assert_int_equal(module.input_bytes, 8); /* null and what is not known count nothing */
    assert_int_equal(module.output_bytes, -1);
    assert_int_equal(tarn_tracker_get_call(tracker, 0, 1, 0, &row, 1, &count), TARN_OK);
    assert_int_equal(row.total, 19);          /* without the other one */
    assert_int_equal(replay(ENTER), TARN_OK); /* at the end it need not wait */
    assert_int_equal(tarn_tracker_get_module(tracker, 0, &module), TARN_OK);
    assert_int_equal(module.state_count, 2);
}

static void differences_are_counted_and_shown(void **state)
{
    (void)state;
    assert_int_equal(
        replay("{\"op\": \"create\", \"storages\": [[1, 8, \"cpu\"]], \"category\": \"Temp\", "
               "\"after\": {\"cpu\": {\"Temp\": 9, \"Total\": 9}}}\n"
               "{\"op\": \"mark\", \"after\": {\"cpu\": {\"Temp\": 8, \"Total\": 8}}}\n"
               "{\"op\": \"mark\", \"after\": {}}\n"
               "{\"op\": \"mark\", \"after\": 7}\n"
               "{\"op\": \"mark\", \"after\": {\"cpu\": {\"Temp\": 8, \"Total\": 8, \"X\": 0}}}\n"),
        TARN_OK);
    assert_int_equal(result.events, 5);
    assert_int_equal(result.compared, 5);
    assert_int_equal(result.differing, 4);
    assert_string_equal(result.first,
                        "line 1, create: recorded {\"cpu\": {\"Temp\": 9, \"Total\": 9}}, here "
                        "{\"cpu\": {\"Parameter\": 0, \"Buffer\": 0, \"Gradient\": 0, "
                        "\"Activation\": 0, \"Temp\": 8, \"Optstate\": 0, \"Other\": 0, "
                        "\"Total\": 8}}");
}

static void what_is_no_number_differs(void **state)
{
    static const char *const after[] = {
        "{\"cpu\": {\"Temp\": 8}}",
        "{\"cpu\": {\"Temp\": 8, \"Total\": \"8\"}}",
        "{\"cpu\": {\"Temp\": 8, \"Total\": 8, \"Other\": \"0\"}}",
        "{\"cpu\": {\"Temp\": 8.0, \"Total\": 8}}",
        "{\"cpu\": {\"Temp\": 7, \"Total\": 8}}",
        "{\"gpu\": {\"Temp\": 8, \"Total\": 8}}",
    };
    char text[512];

    (void)state;
    for (size_t i = 0; i < sizeof after / sizeof *after; i++) {
        (void)snprintf(text, sizeof text,
                       "{\"op\": \"create\", \"storages\": [[1, 8, \"cpu\"]], \"category\": "
                       "\"Temp\", \"after\": %s}\n",
                       after[i]);
        assert_int_equal(replay(text), TARN_OK);
        assert_int_equal(result.compared, 1);
        if (result.differing != 1 || !strstr(result.first, after[i])) {
            fail_msg("%s: %s", after[i], result.first);
        }
    }
}

/* What is shown of a recorded value ends with a whole character. */
static void a_long_difference_is_cut(void **state)
{
    char text[2048] = "{\"op\": \"create\", \"storages\": [], \"after\": \"";
    const char *tail = "\"}\n";
    size_t used = strlen(text);

    (void)state;
    for (int i = 0; i < 300; i++) {
        memcpy(text + used, "\xc3\xa9", 3);
        used += 2;
    }
    memcpy(text + used, tail, strlen(tail) + 1);
    assert_int_equal(replay(text), TARN_OK);
    assert_int_equal(result.differing, 1);
    assert_true(tn_utf8_is_valid(result.first, strlen(result.first)));
    const char *here = strstr(result.first, "\xc3\xa9, here {}");

    assert_non_null(here);
    assert_true(here - result.first < 300);
}

/* What dies at the end of a log, from the first that outlives a step on, is the program's end. */
static void the_programs_end_does_not_count(void **state)
{
    struct tarn_track_row row;
    size_t count;

    (void)state;
    assert_int_equal(replay(CREATE
                            "{\"op\": \"create\", \"storages\": [[2, 30, \"cpu\"]], \"category\": "
                            "\"Temp\"}\n"
                            "{\"op\": \"create\", \"storages\": [[3, 400, \"cpu\"]], \"category\": "
                            "\"Temp\"}\n"
                            "{\"op\": \"delete\", \"id\": 2}\n{\"op\": \"delete\", \"id\": 1}\n"
                            "{\"op\": \"delete\", \"id\": 3}\n"),
                     TARN_OK);
    tarn_tracker_get_rows(tracker, TARN_TRACK_NOW, &row, 1, &count);
    assert_int_equal(count, 0);
    tarn_tracker_get_rows(tracker, TARN_TRACK_AT_END, &row, 1, &count);
    assert_int_equal(count, 1);
    assert_int_equal(row.total, 408);
}

static void wrong_logs_are_refused(void **state)
{
    static const struct {
        const char *text;
        enum tarn_status status;
        const char *why;
    } wrong[] = {
        {"", TARN_ERR_FORMAT, "the log has no events"},
        {"[]\n", TARN_ERR_FORMAT, "line 1, the event is not a JSON object"},
        {"{}\n", TARN_ERR_FORMAT, "line 1, unknown event \"\""},
        {"{\"op\": 5}\n", TARN_ERR_FORMAT, "line 1, unknown event \"\""},
        {CREATE "{\"op\": \"explode\"}\n", TARN_ERR_FORMAT, "line 2, unknown event \"explode\""},
        {CREATE "{\"op\": \"delete\", \"i", TARN_ERR_TRUNCATED,
         "line 2, the log ends in the middle of an event"},
        {CREATE "{\"op\": \"delete\", \"i\n" CREATE, TARN_ERR_FORMAT, NULL},
        {CREATE "{\"op\": \"delete\", \"op\": \"delete\"}\n", TARN_ERR_FORMAT, NULL},
        {CREATE "{\"op\": \"delete\", \"id\": 2}\n", TARN_ERR_FORMAT,
         "line 2, deletion of storage 2: it is unknown: never created, or already deleted"},
        {CREATE "{\"op\": \"delete\"}\n", TARN_ERR_FORMAT,
         "line 2, delete: \"id\" is not a number of at least 0"},
        {CREATE "{\"op\": \"delete\", \"id\": -1}\n", TARN_ERR_FORMAT,
         "line 2, delete: \"id\" is not a number of at least 0"},
        {CREATE "{\"op\": \"resize\", \"id\": 1, \"bytes\": -8}\n", TARN_ERR_FORMAT,
         "line 2, resize: \"bytes\" is not a number of at least 0"},
        {CREATE "{\"op\": \"resize\", \"id\": 1, \"bytes\": 9223372036854775807}\n", TARN_ERR_LIMIT,
         "line 2, resizing of storage 1: more bytes than any memory has"},
        {"{\"op\": \"create\", \"storages\": [[1, -8, \"cpu\"]]}\n", TARN_ERR_FORMAT,
         "line 1, create: a storage is not [id, bytes, device] with numbers of at least 0"},
        {"{\"op\": \"create\", \"storages\": [[\"1\", 8, \"cpu\"]]}\n", TARN_ERR_FORMAT,
         "line 1, create: a storage is not [id, bytes, device] with numbers of at least 0"},
        {"{\"op\": \"create\", \"storages\": [[-1, 8, \"cpu\"]]}\n", TARN_ERR_FORMAT,
         "line 1, create: a storage is not [id, bytes, device] with numbers of at least 0"},
        {"{\"op\": \"create\", \"storages\": [[1, null, \"cpu\"]]}\n", TARN_ERR_FORMAT,
         "line 1, create: a storage is not [id, bytes, device] with numbers of at least 0"},
        {"{\"op\": \"op_done\", \"peak_state\": \"P\", \"parents\": 1}\n", TARN_ERR_FORMAT,
         "line 1, op_done: \"parents\" is not a list"},
        {"{\"op\": \"op_done\", \"peak_state\": 1, \"parents\": []}\n", TARN_ERR_FORMAT,
         "line 1, op_done: \"peak_state\" is not a text"},
        {"{\"op\": \"pre_forward\", \"module\": \"M\", \"inputs\": []}\n", TARN_ERR_FORMAT,
         "line 1, pre_forward: \"module_id\" is not a number of at least 0"},
        {"{\"op\": \"post_forward\", \"module_id\": 1, \"outputs\": []}\n", TARN_ERR_FORMAT,
         "line 1, post_forward: \"module\" is not a text"},
        {ENTER "{\"op\": \"post_forward\", \"module\": \"M\", \"module_id\": 1, \"outputs\": 1}\n",
         TARN_ERR_FORMAT, "line 2, post_forward: \"outputs\" is not a list"},
        {ENTER "{\"op\": \"post_forward\", \"module\": \"M\", \"module_id\": 1, \"outputs\": [], "
               "\"in_backward\": 1}\n",
         TARN_ERR_FORMAT, "line 2, post_forward: \"in_backward\" is neither true nor false"},
        {ENTER
         "{\"op\": \"post_forward\", \"module\": \"M\", \"module_id\": 1, \"outputs\": [[]]}\n",
         TARN_ERR_FORMAT,
         "line 2, post_forward: a storage is not [id, bytes, device] with numbers of at least 0"},
        {"{\"op\": \"pre_backward\", \"module_id\": 1}\n", TARN_ERR_FORMAT,
         "line 1, pre_backward: \"module\" is not a text"},
        {"{\"op\": \"create\", \"storages\": [7]}\n", TARN_ERR_FORMAT,
         "line 1, create: a storage is not [id, bytes, device] with numbers of at least 0"},
        {"{\"op\": \"create\", \"storages\": [[1, 8, 9]]}\n", TARN_ERR_FORMAT,
         "line 1, create: \"device\" is not a text"},
        {"{\"op\": \"create\", \"storages\": [[1, 8, \"\"]]}\n", TARN_ERR_FORMAT,
         "line 1, create: \"device\": a name of the tracker is empty"},
        {"{\"op\": \"create\", \"storages\": 1}\n", TARN_ERR_FORMAT,
         "line 1, create: \"storages\" is not a list"},
        {"{\"op\": \"create\", \"storages\": [], \"in_backward\": 1}\n", TARN_ERR_FORMAT,
         "line 1, create: \"in_backward\" is neither true nor false"},
        {"{\"op\": \"classify\", \"storages\": []}\n", TARN_ERR_FORMAT,
         "line 1, classify: \"category\" is not a text"},
        {"{\"op\": \"op_done\", \"peak_state\": \"P\", \"parents\": [1]}\n", TARN_ERR_FORMAT,
         "line 1, op_done: \"parents\" is not a text"},
        {"{\"op\": \"post_forward\", \"module\": \"M\", \"module_id\": 1, \"outputs\": []}\n",
         TARN_ERR_FORMAT,
         "line 1, leaving of module 1: it is unknown: never entered, or destroyed"},
        {ENTER "{\"op\": \"post_forward\", \"module\": \"M\", \"module_id\": 1, \"outputs\": []}\n"
               "{\"op\": \"post_forward\", \"module\": \"M\", \"module_id\": 1, \"outputs\": []}\n",
         TARN_ERR_FORMAT, "line 3, leaving of module 1: it was not entered, or left before"},
        {"{\"op\": \"pre_backward\", \"module\": \"M\", \"module_id\": 1}\n", TARN_ERR_FORMAT,
         "line 1, entering in backward of module 1: it is unknown: never entered, or destroyed"},
        {"{\"op\": \"post_backward\", \"module\": \"M\", \"module_id\": 1}\n", TARN_ERR_FORMAT,
         "line 1, leaving in backward of module 1: it is unknown: never entered, or destroyed"},
    };
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(replay(wrong[i].text), wrong[i].status);
        if (wrong[i].why) {
            assert_string_equal(error.text, wrong[i].why);
        }
        assert_int_equal(tarn_tracker_check(tracker, &findings), 0);
    }
}

static void other_calls_are_refused(void **state)
{
    const struct tarn_writer full = {test_collect_write, &(struct test_collect){.room = 1}};

    (void)state;
    assert_int_equal(replay(CREATE), TARN_OK);
    result.struct_size = 1;
    assert_int_equal(tarn_tracker_replay_memory(tracker, "", 0, NULL, &result, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_tracker_replay_log(tracker, "/no/such/file", NULL, NULL, &error),
                     TARN_ERR_IO);
    assert_int_equal(
        tarn_tracker_replay_memory(tracker, CREATE, strlen(CREATE), &full, NULL, &error),
        TARN_ERR_IO);
}

/* Another caller of the tracker, here its callback, may finish the entering of a module. */
static void get_ready(void *context, const char *module, bool begins, bool backward)
{
    const struct tarn_track_event ready = {.kind = TARN_TRACK_READY};

    (void)context;
    (void)module;
    (void)backward;
    (void)begins;
    assert_int_equal(tarn_tracker_apply(tracker, &ready, 1, NULL, NULL), TARN_OK);
}

static void a_module_may_be_ready_already(void **state)
{
    const struct tarn_tracker_options options = {.struct_size = sizeof options, .scope = get_ready};

    (void)state;
    assert_int_equal(tarn_tracker_create(&options, &tracker, NULL), TARN_OK);
    assert_int_equal(
        tarn_tracker_replay_memory(tracker, ENTER, sizeof ENTER - 1, NULL, NULL, &error), TARN_OK);
}

/* Each event of a small log once more with the n-th allocation failing. */
static void every_allocation_may_fail(void **state)
{
    const char *text = ENTER CREATE
        "{\"op\": \"op_done\", \"peak_state\": \"Mine\", \"parents\": [\"Global\", \"M\"]}\n"
        "{\"op\": \"delete\", \"id\": 1}\n";
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)state;
    for (uint64_t n = 1; status; n++) {
        tarn_tracker_destroy(tracker);
        assert_int_equal(tarn_tracker_create(NULL, &tracker, NULL), TARN_OK);
        tarn_host_fail_nth(n);
        status = tarn_tracker_replay_memory(tracker, text, strlen(text), NULL, NULL, &error);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_tracker_check(tracker, &findings), 0);
        assert_true(n < 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(recorded_logs_replay, close_all),
        cmocka_unit_test_teardown(a_new_module_waits_for_its_parameters, close_all),
        cmocka_unit_test_teardown(differences_are_counted_and_shown, close_all),
        cmocka_unit_test_teardown(what_is_no_number_differs, close_all),
        cmocka_unit_test_teardown(a_long_difference_is_cut, close_all),
        cmocka_unit_test_teardown(a_module_may_be_ready_already, close_all),
        cmocka_unit_test_teardown(the_programs_end_does_not_count, close_all),
        cmocka_unit_test_teardown(wrong_logs_are_refused, close_all),
        cmocka_unit_test_teardown(other_calls_are_refused, close_all),
        cmocka_unit_test_teardown(every_allocation_may_fail, close_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
