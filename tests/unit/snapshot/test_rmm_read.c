/* SPDX-License-Identifier: MIT */
/* RMM's logs: what rows become, times over midnight, rows that are none, input that is cut. */
#include "support/collect.h"
#include "support/test.h"

#include "snapshot/rmm_read.h"
#include "snapshot/snapshot.h"
#include "snapshot/warning.h"
#include "tarn/host.h"

#include <stdio.h>
#include <string.h>

#define HEADER "Thread,Time,Action,Pointer,Size,Stream\n"

static struct tarn_snapshot *load(const char *text)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    if (tarn_snapshot_load_memory(text, strlen(text), NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

static void entry_is(const struct tarn_snapshot *snapshot, uint64_t index,
                     const struct tn_trace_entry *wanted)
{
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const struct tn_trace_entry *entry = tn_trace_at(model, &model->traces[0], index);

    assert_int_equal(entry->action, wanted->action);
    assert_int_equal(entry->address, wanted->address);
    assert_int_equal(entry->size, wanted->size);
    assert_int_equal(entry->stream, wanted->stream);
    assert_int_equal(entry->time_us, wanted->time_us);
    assert_int_equal(entry->stack, TN_STACK_NONE);
}

static void the_forms_that_are_known(void **state)
{
    struct tarn_snapshot *snapshot =
        load(HEADER "1,00:00:01.5,allocate,0x100,10,0x0\r\n"
                    "2,00:00:02,allocate failure,(nil),99,0xAb\n"
                    "\n" HEADER "1,23:59:59.999999,free,256,10,7\n"
                    "1,00:00:00.1234567,allocate,(nil),0,0\n" /* nothing was asked for */
                    "1,00:00:00.25,deallocate,0x200,18446744073709551615,18446744073709551615");

    (void)state;
    assert_true(tarn_snapshot_has_traces(snapshot));
    assert_int_equal(tarn_snapshot_device_count(snapshot), 1);
    assert_int_equal(tarn_snapshot_segment_count(snapshot), 0);
    assert_int_equal(tarn_snapshot_trace_length(snapshot, 0), 6);
    entry_is(snapshot, 0,
             &(struct tn_trace_entry){
                 .action = TN_TRACE_ALLOC, .address = 256, .size = 10, .time_us = 1500000});
    entry_is(snapshot, 1,
             &(struct tn_trace_entry){
                 .action = TN_TRACE_OOM, .size = 99, .stream = 0xab, .time_us = 2000000});
    entry_is(snapshot, 2,
             &(struct tn_trace_entry){.action = TN_TRACE_FREE_REQUESTED,
                                      .address = 256,
                                      .size = 10,
                                      .stream = 7,
                                      .time_us = 86399999999});
    entry_is(snapshot, 3,
             &(struct tn_trace_entry){.action = TN_TRACE_FREE_COMPLETED,
                                      .address = 256,
                                      .size = 10,
                                      .stream = 7,
                                      .time_us = 86399999999});
    entry_is(snapshot, 4,
             &(struct tn_trace_entry){.action = TN_TRACE_FREE_REQUESTED,
                                      .address = 512,
                                      .stream = UINT64_MAX,
                                      .time_us = (int64_t)86400250000}); /* the next day */
    assert_int_equal(tn_snapshot_model(snapshot)->warnings[0].kind, TN_WARNING_TOO_LARGE);
    assert_int_equal(tn_snapshot_model(snapshot)->warnings[0].count, 2);
    tarn_snapshot_destroy(snapshot);
}

static void times_of_the_epoch_and_none(void **state)
{
    struct tarn_snapshot *snapshot = load(HEADER "1,1634567890.123456,allocate,1,1,0\n"
                                                 "1,,allocate,2,1,0\n"
                                                 "1,24:00:00,allocate,3,1,0\n"
                                                 "1,1:2,allocate,4,1,0\n"
                                                 "1,0:0:3:4,allocate,5,1,0\n");
    static const int64_t times[] = {1634567890123456, TN_TIME_NONE, TN_TIME_NONE, TN_TIME_NONE,
                                    INT64_C(86403000000)};

    (void)state;
    for (uint64_t i = 0; i < 5; i++) {
        entry_is(snapshot, i,
                 &(struct tn_trace_entry){
                     .action = TN_TRACE_ALLOC, .address = i + 1, .size = 1, .time_us = times[i]});
    }
    tarn_snapshot_destroy(snapshot);
}

/* The time of a row after one with the time `before`. */
static void time_after_is(const char *before, const char *text, int64_t wanted)
{
    char log[256];
    struct tarn_snapshot *snapshot;

    (void)snprintf(log, sizeof log, HEADER "1,%s,allocate,1,1,0\n1,%s,allocate,1,1,0\n", before,
                   text);
    snapshot = load(log);
    const struct tn_model *model = tn_snapshot_model(snapshot);
    const int64_t time = tn_trace_at(model, &model->traces[0], 1)->time_us;

    if (time != wanted) {
        fail_msg("%s after %s is %lld", text, before, (long long)time);
    }
    tarn_snapshot_destroy(snapshot);
}

static void time_is(const char *text, int64_t wanted)
{
    time_after_is("", text, wanted);
}

/* Digits without end are no time, nothing behind a colon is none, and neither is what no clock
 * shows. */
static void what_is_no_time_is_none(void **state)
{
    static const char *const times[] = {"99999999999999999999999",
                                        "10:99999999999999999999:00",
                                        "10:",
                                        "10:x",
                                        "1099511627776", /* 2^40 */
                                        "1:60:0",
                                        "1:2:61"};

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        time_is(times[i], TN_TIME_NONE);
    }
}

static void times_are_read_to_the_microsecond(void **state)
{
    (void)state;
    time_is("5", 5000000);
    time_is("5.0000019", 5000001);
    time_is("5.1234567", 5123456);
    time_is("5a", 5000000);
    time_is("5.5a", 5500000);
    time_is("5.5x", 5500000);
    time_is("5s25", 5000000);
    time_is("01:02:60", 3780000000); /* a leap second */
    time_is("01:59:07.25", 7147250000);
    time_is("1099511627775", INT64_C(1099511627775000000));
}

/* A time of day that lies more than half a day back is of the next day. */
static void midnight_is_far_back(void **state)
{
    const int64_t hour = INT64_C(3600000000);

    (void)state;
    time_after_is("20:00:00", "10:00:00", 10 * hour);
    time_after_is("12:00:00", "00:00:00", 0);
    time_after_is("12:00:00.000001", "00:00:00", 24 * hour);
    time_after_is("1634567890", "1634500000", INT64_C(1634500000000000)); /* no time of day */
    time_after_is("1634567890", "86400", 24 * hour);
}

static void digits_of_pointers_may_be_of_either_case(void **state)
{
    struct tarn_snapshot *snapshot =
        load(HEADER "1,0,allocate,0xabcdef,1,0\n1,0,allocate,0xABCDEF,1,0\n");

    (void)state;
    entry_is(snapshot, 0,
             &(struct tn_trace_entry){.action = TN_TRACE_ALLOC, .address = 0xabcdef, .size = 1});
    entry_is(snapshot, 1,
             &(struct tn_trace_entry){.action = TN_TRACE_ALLOC, .address = 0xabcdef, .size = 1});
    tarn_snapshot_destroy(snapshot);
}

static void the_thread_does_not_matter(void **state)
{
    static const char *const threads[] = {"", "0", "x", "140737353963328"};

    (void)state;
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
        char text[256];

        (void)snprintf(text, sizeof text, HEADER "%s,0,allocate,1,1,0\n", threads[i]);
        struct tarn_snapshot *snapshot = load(text);

        entry_is(snapshot, 0,
                 &(struct tn_trace_entry){.action = TN_TRACE_ALLOC, .address = 1, .size = 1});
        tarn_snapshot_destroy(snapshot);
    }
}

static void a_log_begins_with_its_first_column(void **state)
{
    static const uint8_t bytes[] = "Thread,Time";

    (void)state;
    assert_true(tn_rmm_begins(bytes, sizeof bytes - 1));
    assert_true(tn_rmm_begins(bytes, 7));
    assert_false(tn_rmm_begins(bytes, 6));
    assert_false(tn_rmm_begins((const uint8_t *)"Threads,", 8));
}

static void rows_that_are_none_name_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *message;
        int64_t offset; /* of the row */
    } rows[] = {
        {"Thread,Time\n", "line 1 of the RMM log: the header of an RMM log is ", 0},
        {HEADER "1,2,3\n", "line 2 of the RMM log: a row has six columns, not '1,2,3'",
         sizeof HEADER - 1},
        {HEADER "1,0,allocate,1,1,0,9\n", "line 2 of the RMM log: a row has six columns",
         sizeof HEADER - 1},
        {HEADER "\n1,0,fly,1,1,0\n",
         "line 3 of the RMM log: the action is allocate, free or "
         "allocate failure, not 'fly'",
         sizeof HEADER},
        {HEADER "1,0,free,0x,1,0\n", "line 2 of the RMM log: the pointer is a number, not '0x'",
         sizeof HEADER - 1},
        {HEADER "1,0,free,0xg,1,0\n", "the pointer is a number, not '0xg'", sizeof HEADER - 1},
        {HEADER "1,0,free,0x10000000000000000,1,0\n", "the pointer is a number", sizeof HEADER - 1},
        {HEADER "1,0,free,1,-1,0\n", "the size is a number, not '-1'", sizeof HEADER - 1},
        {HEADER "1,0,free,1,18446744073709551616,0\n", "the size is a number", sizeof HEADER - 1},
        {HEADER "1,0,free,1,,0\n", "the size is a number, not ''", sizeof HEADER - 1},
        {HEADER "1,0,free,1,1,default\n", "the stream is a number, not 'default'",
         sizeof HEADER - 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct tarn_snapshot *snapshot = NULL;
        struct tarn_error error;

        assert_int_equal(
            tarn_snapshot_load_memory(rows[i].text, strlen(rows[i].text), NULL, &snapshot, &error),
            TARN_ERR_FORMAT);
        assert_null(snapshot);
        if (!strstr(error.text, rows[i].message)) {
            fail_msg("row %zu: %s", i, error.text);
        }
        assert_int_equal(error.offset, rows[i].offset);
    }
}

static void a_row_that_is_cut_leaves_those_before_it(void **state)
{
    static const char text[] = HEADER "1,0,allocate,1,1,0\n1,0,allo";
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_snapshot_load_memory(text, sizeof text - 1, NULL, &snapshot, &error),
                     TARN_ERR_TRUNCATED);
    assert_string_equal(error.text, "the RMM log ends in the middle of line 3");
    assert_true(tarn_snapshot_is_partial(snapshot));
    assert_int_equal(tarn_snapshot_trace_length(snapshot, 0), 1);
    assert_int_equal(tarn_snapshot_walk_warnings(snapshot, NULL, NULL), 1);
    tarn_snapshot_destroy(snapshot);
}

static void a_line_without_end_is_refused(void **state)
{
    static char text[8192];
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    (void)state;
    memset(text, 'x', sizeof text);
    memcpy(text, HEADER, sizeof HEADER - 1);
    assert_int_equal(tarn_snapshot_load_memory(text, sizeof text, NULL, &snapshot, &error),
                     TARN_ERR_LIMIT);
    assert_null(snapshot);
}

/* Every limit that is too low is named; the log is read whole or not at all. */
static void memory_is_limited(void **state)
{
    static const char text[] = HEADER "1,0,allocate,1,1,0\n";
    enum tarn_status st = TARN_ERR_LIMIT;
    uint64_t refused = 0;
    uint64_t named = 0;

    (void)state;
    for (uint64_t most = 1; st != TARN_OK; most += 512) {
        const struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = most};
        struct tarn_snapshot *snapshot = NULL;
        struct tarn_error error = {.status = TARN_OK};
        char says[128];

        (void)snprintf(says, sizeof says, "the RMM log needs more than the limit of %llu bytes",
                       (unsigned long long)most);
        st = tarn_snapshot_load_memory(text, sizeof text - 1, &limits, &snapshot, &error);
        assert_true(st == TARN_OK || st == TARN_ERR_LIMIT);
        assert_int_equal(error.status, st);
        assert_int_equal(snapshot != NULL, st == TARN_OK);
        if (snapshot) {
            assert_int_equal(tarn_snapshot_entry_count(snapshot), 1);
        }
        refused += st != TARN_OK;
        named += strstr(error.text, says) != NULL;
        tarn_snapshot_destroy(snapshot);
    }
    assert_true(refused > 2);
    assert_true(named > 2);
}

/* Makes the n-th allocation of a load fail. */
static enum tarn_status load_failing(uint64_t n, bool *named_out)
{
    static const char text[] = HEADER "1,0,allocate,1,1,0\n1,0,free,1,1,0\n";
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.status = TARN_OK};

    tarn_host_fail_nth(n);
    const enum tarn_status st =
        tarn_snapshot_load_memory(text, sizeof text - 1, NULL, &snapshot, &error);

    tarn_host_fail_nth(0);
    assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
    assert_int_equal(error.status, st);
    assert_int_equal(snapshot != NULL, st == TARN_OK);
    if (snapshot) {
        assert_int_equal(tarn_snapshot_entry_count(snapshot), 3);
    }
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    *named_out = strstr(error.text, "no host memory for an RMM log (used: ") != NULL;
    return st;
}

static void every_host_failure_is_reported(void **state)
{
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;
    uint64_t named = 0;

    (void)state;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        bool is_named;

        st = load_failing(n, &is_named);
        failures += st != TARN_OK;
        named += is_named;
    }
    assert_true(failures > 2);
    assert_true(named > 0);
}

/* The keys are in PyTorch's order; a request that failed has no address. */
static void a_log_is_written_as_a_snapshot(void **state)
{
    struct tarn_snapshot *snapshot =
        load(HEADER "1,1,allocate,0x100,10,7\n1,2,allocate failure,(nil),99,8\n");
    struct test_collect json = {.text = NULL};
    const struct tarn_writer writer = {test_collect_write, &json};

    (void)state;
    assert_int_equal(tarn_snapshot_write(snapshot, TARN_SNAPSHOT_JSON, &writer, NULL), TARN_OK);
    assert_string_equal(
        json.text,
        "{\"segments\":[],\"device_traces\":[[{\"action\":\"alloc\",\"addr\":256,\"size\":10,"
        "\"stream\":7,\"time_us\":1000000},{\"action\":\"oom\",\"device_free\":0,\"size\":99,"
        "\"stream\":8,\"time_us\":2000000}]]}\n");
    free(json.text);
    tarn_snapshot_destroy(snapshot);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forms_that_are_known),
        cmocka_unit_test(times_of_the_epoch_and_none),
        cmocka_unit_test(what_is_no_time_is_none),
        cmocka_unit_test(times_are_read_to_the_microsecond),
        cmocka_unit_test(midnight_is_far_back),
        cmocka_unit_test(digits_of_pointers_may_be_of_either_case),
        cmocka_unit_test(the_thread_does_not_matter),
        cmocka_unit_test(a_log_begins_with_its_first_column),
        cmocka_unit_test(rows_that_are_none_name_their_line),
        cmocka_unit_test(a_row_that_is_cut_leaves_those_before_it),
        cmocka_unit_test(a_line_without_end_is_refused),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(every_host_failure_is_reported),
        cmocka_unit_test(a_log_is_written_as_a_snapshot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
