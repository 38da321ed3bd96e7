/* SPDX-License-Identifier: MIT */
/* RMM's logs: what rows become, times over midnight, rows that are none, input that is cut. */
#include "support/test.h"

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

/* Digits without end are no time, and nothing behind a colon is none. */
static void times_of_many_digits_are_none(void **state)
{
    static const char *const times[] = {"99999999999999999999999", "10:99999999999999999999:00",
                                        "10:", "10:x"};

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        char text[256];
        struct tarn_snapshot *snapshot = NULL;

        (void)snprintf(text, sizeof text, HEADER "1,%s,allocate,1,1,0\n", times[i]);
        assert_int_equal(tarn_snapshot_load_memory(text, strlen(text), NULL, &snapshot, NULL),
                         TARN_OK);
        entry_is(snapshot, 0,
                 &(struct tn_trace_entry){
                     .action = TN_TRACE_ALLOC, .address = 1, .size = 1, .time_us = TN_TIME_NONE});
        tarn_snapshot_destroy(snapshot);
    }
}

static void rows_that_are_none_name_their_line(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } rows[] = {
        {"Thread,Time\n", "line 1 of the RMM log: the header of an RMM log is "},
        {HEADER "1,2,3\n", "line 2 of the RMM log: a row has six columns, not '1,2,3'"},
        {HEADER "1,0,allocate,1,1,0,9\n", "line 2 of the RMM log: a row has six columns"},
        {HEADER "\n1,0,fly,1,1,0\n", "line 3 of the RMM log: the action is allocate, free or "
                                     "allocate failure, not 'fly'"},
        {HEADER "1,0,free,0x,1,0\n", "line 2 of the RMM log: the pointer is a number, not '0x'"},
        {HEADER "1,0,free,0xg,1,0\n", "the pointer is a number, not '0xg'"},
        {HEADER "1,0,free,0x10000000000000000,1,0\n", "the pointer is a number"},
        {HEADER "1,0,free,1,-1,0\n", "the size is a number, not '-1'"},
        {HEADER "1,0,free,1,18446744073709551616,0\n", "the size is a number"},
        {HEADER "1,0,free,1,,0\n", "the size is a number, not ''"},
        {HEADER "1,0,free,1,1,default\n", "the stream is a number, not 'default'"},
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

static void memory_is_limited(void **state)
{
    const struct tarn_read_limits limits = {.struct_size = sizeof limits, .max_memory = 1};
    static const char text[] = HEADER "1,0,allocate,1,1,0\n";
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_snapshot_load_memory(text, sizeof text - 1, &limits, &snapshot, &error),
                     TARN_ERR_LIMIT);
    assert_null(snapshot);
}

static void every_host_failure_is_reported(void **state)
{
    static const char text[] = HEADER "1,0,allocate,1,1,0\n1,0,free,1,1,0\n";
    const uint64_t live = tarn_host_get_usage().live_bytes;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t failures = 0;

    (void)state;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        struct tarn_snapshot *snapshot = NULL;
        struct tarn_error error = {.status = TARN_OK};

        tarn_host_fail_nth(n);
        st = tarn_snapshot_load_memory(text, sizeof text - 1, NULL, &snapshot, &error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(snapshot != NULL, st == TARN_OK);
        tarn_snapshot_destroy(snapshot);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        failures += st != TARN_OK;
    }
    assert_true(failures > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_forms_that_are_known),
        cmocka_unit_test(times_of_the_epoch_and_none),
        cmocka_unit_test(times_of_many_digits_are_none),
        cmocka_unit_test(rows_that_are_none_name_their_line),
        cmocka_unit_test(a_row_that_is_cut_leaves_those_before_it),
        cmocka_unit_test(a_line_without_end_is_refused),
        cmocka_unit_test(memory_is_limited),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
