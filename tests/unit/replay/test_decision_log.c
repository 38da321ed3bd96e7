/* SPDX-License-Identifier: MIT */
/* Lines of a decision log: what each call has, and what is refused with which words. */
#include "support/test.h"

#include "replay/decision_log.h"
#include "support/temp.h"
#include "tarn/host.h"

#define HEADER                                                                                     \
    "{\"conf\":\"max_split_size_mb:20\",\"device_total\":1073741824,\"streams\":[0,777],"          \
    "\"brief\":[\"allocated_bytes\",\"num_ooms\"]}\n"
#define REST ",\"events\":[],\"brief\":[3,4]}\n"

/* Large: it has all streams. */
static struct tn_decision_log decisions;

static void log_open(const char *text)
{
    struct temp_file file = temp_write(text, strlen(text));
    struct tarn_error error = {.text = ""};
    const enum tarn_status st = tn_decision_log_open(&decisions, file.path, &error);

    temp_remove(&file);
    if (st) {
        fail_msg("%s: %s", text, error.text);
    }
}

static struct tn_decision log_next(void)
{
    struct tn_decision decision;
    struct tarn_error error = {.text = ""};

    if (tn_decision_log_next(&decisions, &decision, &error)) {
        fail_msg("%s", error.text);
    }
    return decision;
}

static void log_ends(void)
{
    struct tn_decision decision;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(tn_decision_log_next(&decisions, &decision, NULL), TARN_ERR_NOT_FOUND);
    }
    tn_decision_log_close(&decisions);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void the_header_is_read(void **state)
{
    (void)state;
    log_open(HEADER);
    assert_string_equal(decisions.conf, "max_split_size_mb:20");
    assert_int_equal(decisions.device_total, 1073741824);
    assert_int_equal(decisions.stream_count, 2);
    assert_int_equal(decisions.streams[1], 777);
    assert_int_equal(decisions.brief_count, 2);
    assert_string_equal(decisions.brief[1], "num_ooms");
    assert_false(decisions.device_is_full);
    assert_false(decisions.settled);
    log_ends();
    log_open("{\"conf\":\"\",\"device_total\":0,\"streams\":[],\"brief\":[],"
             "\"device_is_full\":true,\"settled\":true,\"torch\":\"2.11.0\"}");
    assert_true(decisions.device_is_full);
    assert_true(decisions.settled);
    assert_int_equal(decisions.stream_count, 0);
    log_ends();
}

static void streams_are_numbers_of_the_list_or_themselves(void **state)
{
    static const struct {
        int64_t number;
        tarn_stream stream;
    } rows[] = {{0, 0}, {1, 777}, {2, 2}, {94694601292992, 94694601292992}, {-1, UINT64_MAX}};

    (void)state;
    log_open(HEADER);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct tn_json_value number = {.kind = TN_JSON_INTEGER, .as.integer = rows[i].number};

        assert_int_equal(tn_decision_log_stream(&decisions, &number), rows[i].stream);
    }
    log_ends();
}

static void a_request_has_what_it_asked_and_got(void **state)
{
    struct tn_decision decision;

    (void)state;
    log_open(HEADER "{\"op\":\"malloc\",\"id\":7,\"size\":100,\"stream\":1,\"ptr\":4096,"
                    "\"events\":[[\"alloc\",4096,100,777]],\"brief\":[512,0]}\n"
                    "{\"op\":\"malloc\",\"size\":9,\"stream\":0,\"error\":\"oom\","
                    "\"message\":\"no more\"" REST);
    decision = log_next();
    assert_int_equal(decision.op, TN_DECISION_MALLOC);
    assert_int_equal(decision.line, 2);
    assert_int_equal(decision.id, 7);
    assert_int_equal(decision.size, 100);
    assert_int_equal(decision.stream, 777); /* the handle */
    assert_int_equal(decision.ptr, 4096);
    assert_false(decision.oom);
    assert_null(decision.message);
    assert_int_equal(tn_json_length(decision.events), 1);
    assert_int_equal(tn_json_integer(tn_json_at(decision.brief, 0)), 512);
    decision = log_next(); /* failed: neither id nor pointer */
    assert_int_equal(decision.line, 3);
    assert_true(decision.oom);
    assert_int_equal(decision.id, 0);
    assert_int_equal(decision.ptr, 0);
    assert_string_equal(decision.message, "no more");
    assert_int_equal(tn_json_length(decision.events), 0);
    log_ends();
}

/* One line of every kind but malloc, in the order of the list. */
static void every_kind_of_call_has_its_fields(void **state)
{
    static const char *const lines[] = {
        "\"op\":\"free\",\"id\":9",
        "\"op\":\"record_stream\",\"id\":9,\"stream\":1",
        "\"op\":\"synchronize\"",
        "\"op\":\"empty_cache\"",
        "\"op\":\"reset_peak_stats\"",
        "\"op\":\"reset_accumulated_stats\"",
        "\"op\":\"set_fraction\",\"fraction\":0.25",
        "\"op\":\"block_stream\",\"stream\":1",
        "\"op\":\"unblock_stream\",\"stream\":1",
        "\"op\":\"begin_allocate_to_pool\",\"pool\":[3,4],\"stream\":1",
        "\"op\":\"begin_allocate_to_pool_failed\",\"pool\":[3,4]",
        "\"op\":\"end_allocate_to_pool\",\"pool\":[3,4]",
        "\"op\":\"end_allocate_to_pool_failed\",\"pool\":[3,4]",
        "\"op\":\"release_pool\",\"pool\":[3,4]",
        "\"op\":\"set_pool_use_on_oom\",\"pool\":[3,4],\"value\":true",
        "\"op\":\"set_pool_no_split\",\"pool\":[3,4],\"value\":false",
        "\"op\":\"get_checkpoint\",\"pool\":[3,4]",
        "\"op\":\"get_checkpoint_failed\",\"pool\":[3,4]",
        "\"op\":\"set_checkpoint\",\"pool\":[3,4],\"freed\":[1],\"created\":[[1,2],[3,4]]",
        "\"op\":\"set_checkpoint_failed\",\"pool\":[3,4]",
        "\"op\":\"set_config\",\"conf\":\"a:1\"",
        "\"op\":\"stats\",\"stats\":{\"segment\":1}",
        "\"op\":\"snapshot\",\"segments\":[{},{}]",
    };
    char text[256];

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        (void)snprintf(text, sizeof text, "%s{%s%s", HEADER, lines[i], REST);
        log_open(text);
        const struct tn_decision d = log_next();
        const bool has_pool = strstr(lines[i], "\"pool\"") != NULL;

        (void)snprintf(text, sizeof text, "\"op\":\"%s\"", tn_decision_name(d.op));
        assert_memory_equal(lines[i], text, strlen(text));
        assert_int_equal(d.pool.first, has_pool ? 3 : 0);
        assert_int_equal(d.pool.second, has_pool ? 4 : 0);
        assert_int_equal(d.id, strstr(lines[i], "\"id\"") ? 9 : 0);
        assert_int_equal(d.stream, strstr(lines[i], "\"stream\"") ? 777 : 0);
        assert_int_equal(d.value, strstr(lines[i], "true") != NULL);
        assert_true(d.fraction == (d.op == TN_DECISION_SET_FRACTION ? 0.25 : 0));
        assert_int_equal(d.conf != NULL, d.op == TN_DECISION_SET_CONFIG);
        assert_int_equal(tn_json_length(d.created), d.op == TN_DECISION_SET_CHECKPOINT ? 2 : 0);
        assert_int_equal(tn_json_length(d.freed), d.op == TN_DECISION_SET_CHECKPOINT ? 1 : 0);
        assert_int_equal(tn_json_pairs(d.stats), d.op == TN_DECISION_STATS ? 1 : 0);
        assert_int_equal(tn_json_length(d.segments), d.op == TN_DECISION_SNAPSHOT ? 2 : 0);
        assert_int_equal(tn_json_integer(tn_json_at(d.brief, 1)), 4);
        log_ends();
    }
}

static void every_call_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int op = 0; op < TN_DECISION_COUNT; op++) {
        for (int other = 0; other < op; other++) {
            assert_string_not_equal(tn_decision_name((enum tn_decision_op)op),
                                    tn_decision_name((enum tn_decision_op)other));
        }
    }
    assert_string_equal(tn_decision_name(TN_DECISION_COUNT), "unknown");
}

/* ---- refused ---- */

/* What the JSON reader says is its own: after "not JSON: " anything may follow. */
static void text_is(const char *text, const char *says)
{
    static const char foreign[] = "not JSON: ";
    const size_t length = strlen(says);

    if (length > sizeof foreign && strcmp(says + length - (sizeof foreign - 1), foreign) == 0) {
        assert_true(strlen(text) > length && strchr(text, '\n') == NULL);
        assert_memory_equal(text, says, length);
    } else {
        assert_string_equal(text, says);
    }
}

static void open_fails(const char *text, enum tarn_status status, int64_t offset, const char *says)
{
    struct temp_file file = temp_write(text, strlen(text));
    struct tarn_error error = {.text = ""};

    assert_int_equal(tn_decision_log_open(&decisions, file.path, &error), status);
    temp_remove(&file);
    text_is(error.text, says);
    assert_int_equal(error.status, status);
    assert_int_equal(error.offset, offset);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void a_header_without_sense_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *says; /* behind "line 1 of the decision log: " */
    } rows[] = {
        {"{]\n", "not JSON: "},
        {"[]\n", "not a JSON object"},
        {"7\n", "not a JSON object"},
        {"{}\n", "\"conf\" is missing or not a text"},
        {"{\"conf\":1}\n", "\"conf\" is missing or not a text"},
        {"{\"conf\":\"\",\"conf\":\"\"}\n", "not JSON: "},
        {"{\"conf\":\"\",\"device_total\":-1}\n",
         "\"device_total\" is missing or not a number from 0 on"},
        {"{\"conf\":\"\",\"device_total\":1.0}\n",
         "\"device_total\" is missing or not a number from 0 on"},
        {"{\"conf\":\"\",\"device_total\":1}\n", "\"streams\" is missing or not a list"},
        {"{\"conf\":\"\",\"device_total\":1,\"streams\":[]}\n",
         "\"brief\" is missing or not a list"},
        {"{\"conf\":\"\",\"device_total\":1,\"streams\":[0,null],\"brief\":[]}\n",
         "\"streams\" contains something other than numbers"},
        {"{\"conf\":\"\",\"device_total\":1,\"streams\":[],\"brief\":[\"a\",2]}\n",
         "\"brief\" contains something other than names"},
    };

    (void)state;
    open_fails("", TARN_ERR_FORMAT, -1, "the decision log is empty");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char says[256];

        (void)snprintf(says, sizeof says, "line 1 of the decision log: %s", rows[i].says);
        open_fails(rows[i].text, TARN_ERR_FORMAT, 1, says);
    }
}

/* A header with as many streams and names as asked for. */
static char *long_header(int streams, int names)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    (void)fputs("{\"conf\":\"\",\"device_total\":1,\"streams\":[", out);
    for (int i = 0; i < streams; i++) {
        (void)fprintf(out, "%s%d", i ? "," : "", i * 2);
    }
    (void)fputs("],\"brief\":[", out);
    for (int i = 0; i < names; i++) {
        (void)fprintf(out, "%s\"n%d\"", i ? "," : "", i);
    }
    (void)fputs("]}\n", out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void a_header_has_bounds(void **state)
{
    static const int bad[][2] = {{TN_LOG_STREAMS_MAX + 1, 0}, {0, TN_BRIEF_MAX + 1}};
    char *text = long_header(TN_LOG_STREAMS_MAX, TN_BRIEF_MAX);

    (void)state;
    log_open(text);
    assert_int_equal(decisions.stream_count, TN_LOG_STREAMS_MAX);
    assert_int_equal(decisions.streams[TN_LOG_STREAMS_MAX - 1], (TN_LOG_STREAMS_MAX - 1) * 2);
    assert_int_equal(decisions.brief_count, TN_BRIEF_MAX);
    log_ends();
    free(text);
    for (size_t i = 0; i < 2; i++) {
        text = long_header(bad[i][0], bad[i][1]);
        open_fails(text, TARN_ERR_FORMAT, 1,
                   "line 1 of the decision log: more than 4096 streams or 32 counters");
        free(text);
    }
}

static void a_line_without_sense_is_refused(void **state)
{
    static const struct {
        const char *line;
        const char *says; /* behind "line 3 of the decision log: " */
    } rows[] = {
        {"\n", "not JSON: "},
        {"[1]\n", "not a JSON object"},
        {"{\"id\":1" REST, "\"op\" is missing or not a text"},
        {"{\"op\":\"fly\"" REST, "unknown call \"fly\""},
        {"{\"op\":\"unknown\"" REST, "unknown call \"unknown\""},
        {"{\"op\":\"0123456789012345678901234567890123456789012345678901234567890123456789\"" REST,
         "unknown call \"012345678901234567890123456789012345678901234567890123456789\""},
        {"{\"op\":\"free\"" REST, "\"id\" is missing or not a number from 0 on"},
        {"{\"op\":\"malloc\",\"id\":1,\"size\":1,\"ptr\":1,\"stream\":2" REST,
         "stream 2 is not among the header's 2 streams"},
        {"{\"op\":\"release_pool\",\"pool\":[1,2,3]" REST, "\"pool\" is not a pair of numbers"},
        {"{\"op\":\"release_pool\",\"pool\":[1,\"2\"]" REST, "\"pool\" is not a pair of numbers"},
        {"{\"op\":\"set_fraction\",\"fraction\":\"1\"" REST,
         "\"fraction\" is missing or not a number"},
        {"{\"op\":\"set_pool_no_split\",\"pool\":[1,2],\"value\":1" REST,
         "\"value\" is missing or neither true nor false"},
        {"{\"op\":\"set_checkpoint\",\"pool\":[1,2],\"freed\":[]" REST,
         "\"created\" is missing or not a list"},
        {"{\"op\":\"set_checkpoint\",\"freed\":[],\"created\":[]" REST,
         "\"pool\" is missing or not a list"},
        {"{\"op\":\"set_pool_no_split\",\"value\":true" REST, "\"pool\" is missing or not a list"},
        {"{\"op\":\"stats\",\"stats\":[]" REST, "\"stats\" is not an object"},
        {"{\"op\":\"snapshot\",\"segments\":{}" REST, "\"segments\" is missing or not a list"},
        {"{\"op\":\"set_config\"" REST, "\"conf\" is missing or not a text"},
        {"{\"op\":\"synchronize\",\"brief\":[]}\n", "\"events\" is missing or not a list"},
        {"{\"op\":\"synchronize\",\"events\":[]}\n", "\"brief\" is missing or not a list"},
        {"{\"op\":\"synchronize\",\"brief\":[],\"events\":[[\"alloc\",1,2,3],[\"alloc\",1,2]]}\n",
         "event 1 is not [action, address, size, stream]"},
        {"{\"op\":\"synchronize\",\"brief\":[],\"events\":[[\"alloc\",1,\"2\",3]]}\n",
         "event 0 is not [action, address, size, stream]"},
        {"{\"op\":\"synchronize\",\"brief\":[],\"events\":[[\"alloc\",1,2,null]]}\n",
         "event 0 is not [action, address, size, stream]"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tn_decision decision = {.id = 42};
        struct tarn_error error = {.text = ""};
        char text[512];

        (void)snprintf(text, sizeof text, "%s{\"op\":\"synchronize\"%s%s", HEADER, REST,
                       rows[i].line);
        log_open(text);
        (void)log_next();
        (void)snprintf(text, sizeof text, "line 3 of the decision log: %s", rows[i].says);
        assert_int_equal(tn_decision_log_next(&decisions, &decision, &error), TARN_ERR_FORMAT);
        text_is(error.text, text);
        assert_int_equal(error.offset, 3);
        assert_int_equal(decision.id, 42); /* untouched */
        log_ends();
    }
}

static void a_file_that_is_not_there_is_not_opened(void **state)
{
    struct tarn_error error = {.text = ""};

    (void)state;
    assert_int_equal(tn_decision_log_open(&decisions, "/nonexistent/log", &error), TARN_ERR_IO);
    assert_non_null(strstr(error.text, "/nonexistent/log"));
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* ---- host memory ---- */

/* Reads all of a recorded log. */
static enum tarn_status read_all(const char *path, uint64_t *calls_out, struct tarn_error *error)
{
    struct tn_decision decision;
    enum tarn_status st = tn_decision_log_open(&decisions, path, error);

    *calls_out = 0;
    if (st) {
        return st;
    }
    while ((st = tn_decision_log_next(&decisions, &decision, error)) == TARN_OK) {
        (*calls_out)++;
        assert_int_equal(decision.line, *calls_out + 1);
    }
    tn_decision_log_close(&decisions);
    return st == TARN_ERR_NOT_FOUND ? TARN_OK : st;
}

/* A log whose one call has a million blanks in its line. */
static struct temp_file long_line(void)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    assert_non_null(out);
    (void)fprintf(out, "%s{\"op\":\"synchronize\",%*s\"events\":[],\"brief\":[]}\n", HEADER,
                  1 << 20, "");
    assert_int_equal(fclose(out), 0);
    struct temp_file file = temp_write(text, size);

    free(text);
    return file;
}

/* Of a packed log, and of one with a line longer than the window, which must grow. */
static void every_host_failure_is_reported(void **state)
{
    struct temp_file file = long_line();
    uint64_t failures = 0;
    const struct {
        const char *path;
        uint64_t calls;
    } logs[] = {{TEST_DATA_DIR "/decisions/big_default.jsonl.gz", 2238}, {file.path, 1}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        enum tarn_status st = TARN_ERR_HOST_MEMORY;

        for (uint64_t n = 1; st != TARN_OK; n++) {
            struct tarn_error error = {.text = ""};
            uint64_t calls;

            tarn_host_fail_nth(n);
            st = read_all(logs[i].path, &calls, &error);
            tarn_host_fail_nth(0);
            assert_int_equal(tarn_host_get_usage().live_bytes, 0);
            assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
            assert_int_equal(error.status, st);
            assert_int_equal(error.text[0] != '\0', st != TARN_OK);
            assert_true(st != TARN_OK || calls == logs[i].calls);
            failures += st != TARN_OK;
        }
    }
    temp_remove(&file);
    assert_true(failures >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_header_is_read),
        cmocka_unit_test(streams_are_numbers_of_the_list_or_themselves),
        cmocka_unit_test(a_request_has_what_it_asked_and_got),
        cmocka_unit_test(every_kind_of_call_has_its_fields),
        cmocka_unit_test(every_call_has_a_name_of_its_own),
        cmocka_unit_test(a_header_without_sense_is_refused),
        cmocka_unit_test(a_header_has_bounds),
        cmocka_unit_test(a_line_without_sense_is_refused),
        cmocka_unit_test(a_file_that_is_not_there_is_not_opened),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
