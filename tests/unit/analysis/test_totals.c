/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "analysis/totals.h"
#include "snapshot/snapshot.h"

/* Devices out of order, segments of one apart from each other, and one with a trace alone. */
static void each_device_is_added_up(void **state)
{
    static const struct tn_totals wanted[] = {
        {.device = 0,
         .segments = 1,
         .reserved = 20 << 20,
         .entries = 4,
         .ooms = 2,
         .first_us = 10,
         .last_us = 20},
        {.device = 1,
         .segments = 3,
         .reserved = 9 << 20,
         .allocated = 512 + 2048 + 4096,
         .active = 512 + 1024 + 2048 + 4096,
         .requested = 100 + 1000 + 2000 + 4000,
         .blocks = 4,
         .entries = 1,
         .ooms = 1,
         .first_us = 7,
         .last_us = 7},
        {.device = 2, .entries = 1, .ooms = 1, .first_us = TN_TIME_NONE, .last_us = TN_TIME_NONE},
        {.device = 5,
         .segments = 1,
         .reserved = 1 << 20,
         .first_us = TN_TIME_NONE,
         .last_us = TN_TIME_NONE},
    };
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': ["
        "{'address': 1048576, 'total_size': 2097152, 'device': 1, 'stream': 0, 'blocks': ["
        " {'size': 512, 'requested_size': 100, 'state': 'active_allocated'},"
        " {'size': 1024, 'requested_size': 1000, 'state': 'active_pending_free'},"
        " {'size': 2095616, 'requested_size': 9, 'state': 'inactive'}]},"
        "{'address': 4194304, 'total_size': 2097152, 'device': 1, 'stream': 0, 'blocks': ["
        " {'size': 4096, 'requested_size': 4000, 'state': 'active_allocated'},"
        " {'size': 2093056, 'state': 'inactive'}]},"
        "{'address': 268435456, 'total_size': 1048576, 'device': 5, 'stream': 0, 'blocks': []},"
        "{'address': 16777216, 'total_size': 20971520, 'device': 0, 'stream': 0, 'blocks': []},"
        "{'address': 67108864, 'total_size': 5242880, 'device': 1, 'stream': 0, 'blocks': ["
        " {'size': 2048, 'requested_size': 2000, 'state': 'active_allocated'},"
        " {'size': 5240832, 'state': 'inactive'}]}],"
        "'device_traces': [["
        "{'action': 'alloc', 'addr': 4096, 'size': 512, 'stream': 0, 'time_us': 10},"
        "{'action': 'oom', 'size': 512, 'stream': 0, 'device_free': 0, 'time_us': 30},"
        "{'action': 'oom', 'size': 512, 'stream': 0, 'device_free': 0, 'time_us': 20},"
        "{'action': 'alloc', 'addr': 8192, 'size': 512, 'stream': 0}],"
        "[{'action': 'oom', 'size': 512, 'stream': 0, 'device_free': 0, 'time_us': 7}],"
        "[{'action': 'oom', 'size': 512, 'stream': 0, 'device_free': 0}], []]}");
    struct tn_vec totals;

    (void)state;
    assert_true(tn_totals_collect(tn_snapshot_model(snapshot), &totals));
    assert_int_equal(totals.count, sizeof wanted / sizeof wanted[0]);
    for (size_t i = 0; i < totals.count; i++) {
        const struct tn_totals *row = (const struct tn_totals *)totals.items + i;

        assert_int_equal(row->device, wanted[i].device);
        assert_int_equal(row->segments, wanted[i].segments);
        assert_int_equal(row->reserved, wanted[i].reserved);
        assert_int_equal(row->allocated, wanted[i].allocated);
        assert_int_equal(row->active, wanted[i].active);
        assert_int_equal(row->requested, wanted[i].requested);
        assert_int_equal(row->blocks, wanted[i].blocks);
        assert_int_equal(row->entries, wanted[i].entries);
        assert_int_equal(row->ooms, wanted[i].ooms);
        assert_true(row->first_us == wanted[i].first_us);
        assert_true(row->last_us == wanted[i].last_us);
    }
    tn_vec_fini(&totals);
    tarn_snapshot_destroy(snapshot);
}

static void nothing_is_of_no_device(void **state)
{
    struct tarn_snapshot *snapshot = report_parse("{'segments': [], 'device_traces': [[], []]}");
    struct tn_vec totals;

    (void)state;
    assert_true(tn_totals_collect(tn_snapshot_model(snapshot), &totals));
    assert_int_equal(totals.count, 0);
    tn_vec_fini(&totals);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Without host memory there are no totals, instead of some. */
static void every_host_failure_is_reported(void **state)
{
    enum {
        DEVICES = 40
    };
    struct tn_model_segment segments[DEVICES] = {{.device = 0}};
    struct tn_trace traces[DEVICES] = {{.count = 0}};
    const struct tn_trace_entry entry = {.time_us = 5, .action = TN_TRACE_OOM};
    struct tn_model model;
    struct tn_vec totals;
    uint64_t number;
    uint64_t failures = 0;
    bool good = false;

    (void)state;
    assert_int_equal(tn_model_init(&model, 0), TARN_OK);
    for (int i = 0; i < DEVICES; i++) { /* each has a segment or a trace */
        segments[i] = (struct tn_model_segment){.device = 2 * i, .total_size = 512};
        assert_int_equal(tn_model_add_entry(&model, &entry, &number), TARN_OK);
        traces[i] = (struct tn_trace){.first = number, .count = (uint64_t)i % 2};
    }
    model.segments = segments;
    model.segment_count = DEVICES / 2;
    model.traces = traces;
    model.trace_count = DEVICES;
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; !good; n++) {
        tarn_host_fail_nth(n);
        good = tn_totals_collect(&model, &totals);
        tarn_host_fail_nth(0);
        failures += !good;
        if (good) {
            assert_int_equal(totals.count, DEVICES);
        }
        tn_vec_fini(&totals);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    assert_true(failures >= 3);
    tn_model_fini(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_device_is_added_up),
        cmocka_unit_test(nothing_is_of_no_device),
        cmocka_unit_test(every_host_failure_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
