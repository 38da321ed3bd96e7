/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "analysis/timeline.h"
#include "snapshot/snapshot.h"
#include "tarn/report.h"

static enum tarn_status peak(const void *context, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct report_asked *asked = context;

    return tarn_report_peak(asked->snapshot, &asked->options, writer, error);
}

static struct tn_timeline timeline_of(const struct tarn_snapshot *snapshot, size_t device)
{
    struct tn_timeline timeline;

    assert_true(tn_timeline_init(&timeline, tn_snapshot_model(snapshot), device));
    return timeline;
}

/* requested_bytes.all.peak and reserved_bytes.all.peak as the GPU's run counted them. Of
 * llama_generate the trace is the end only, so just the latter. */
static void peaks_equal_the_counters_of_the_runs(void **state)
{
    static const struct {
        const char *name;
        uint64_t requested, reserved;
    } runs[] = {
        {"tiny", 50332675, 54525952},
        {"cudagraph", 469295120, 652214272},
        {"gpt2_varlen", 10432354568, 11580473344},
        {"gpt2_varlen_expandable", 10432354568, 11020533760},
        {"multistream", 898801672, 1950351360},
        {"resnet_sizes", 7160942608, 9781116928},
        {"oom", 6857570144, 7488929792},
        {"llama_generate", 578669248, 757071872},
    };

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct tarn_snapshot *snapshot = report_load(runs[i].name);
        struct tn_timeline timeline = timeline_of(snapshot, 0);

        assert_int_equal(timeline.requested_peak.requested, runs[i].requested);
        assert_int_equal(timeline.reserved_peak.reserved, runs[i].reserved);
        assert_int_equal(timeline.doubled_allocs, 0);
        assert_int_equal(timeline.unknown_frees, 0);
        assert_int_equal(tn_timeline_reserved_max(&timeline, timeline.trace->count - 1),
                         runs[i].reserved);
        tn_timeline_fini(&timeline);
        tarn_snapshot_destroy(snapshot);
    }
}

/* At every entry, bytes in use are the sum of the lives that say so. */
static void lifetimes_add_up_at_every_entry(void **state)
{
    struct tarn_snapshot *snapshot = report_load("multistream");
    struct tn_timeline timeline = timeline_of(snapshot, 0);
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(&timeline);

    (void)state;
    for (uint64_t entry = 0; entry < timeline.trace->count; entry += 97) {
        uint64_t sum = 0;

        for (size_t i = 0; i < timeline.lifetimes.count; i++) {
            sum += tn_lifetime_is_at(&lifetimes[i], entry) ? lifetimes[i].size : 0;
        }
        assert_int_equal(tn_timeline_at(&timeline, entry).requested, sum);
    }
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
}

/* In mid-run: 700 bytes were there and are freed, 300 were there and stay; an address is allocated
 * twice, and one freed twice. */
static const char mid_run[] =
    "{'segments': [{'address': 4096, 'total_size': 8192, 'device': 0, 'blocks': ["
    " {'size': 512, 'requested_size': 300, 'state': 'active_allocated', 'frames': ["
    "  {'name': 'kept', 'filename': 'a/k.py', 'line': 3}]},"
    " {'size': 7680, 'state': 'inactive', 'frames': []}]}],"
    "'device_traces': [["
    "{'action': 'free_requested', 'addr': 5000, 'size': 700, 'stream': 0},"
    "{'action': 'alloc', 'addr': 6000, 'size': 900, 'stream': 0, 'frames': ["
    "  {'name': 'leaf\\u001b', 'filename': 'x.py', 'line': 1},"
    "  {'name': 'call', 'filename': '/x/torch/nn/module.py', 'line': 9},"
    "  {'name': 'user', 'filename': 'u.py', 'line': 2}]},"
    "{'action': 'free_completed', 'addr': 5000, 'size': 700, 'stream': 0},"
    "{'action': 'segment_alloc', 'addr': 90000, 'size': 1000, 'stream': 0},"
    "{'action': 'alloc', 'addr': 6000, 'size': 100, 'stream': 0},"
    "{'action': 'segment_free', 'addr': 90000, 'size': 1000, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 6000, 'size': 100, 'stream': 0},"
    "{'action': 'free_completed', 'addr': 6000, 'size': 100, 'stream': 0}]]}";

static void a_trace_that_begins_in_mid_run(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mid_run);
    struct tn_timeline timeline = timeline_of(snapshot, 0);

    (void)state;
    assert_int_equal(timeline.start.requested, 1000);
    assert_int_equal(timeline.start.reserved, 8192);
    assert_int_equal(timeline.requested_peak.requested, 1900);
    assert_int_equal(timeline.requested_peak.entry, 1);
    assert_int_equal(timeline.reserved_peak.reserved, 9192);
    assert_int_equal(timeline.end.requested, 300);
    assert_int_equal(timeline.end.reserved, 8192);
    assert_int_equal(timeline.before_count, 2);
    assert_int_equal(timeline.doubled_allocs, 1);
    assert_int_equal(timeline.unknown_frees, 1);
    tn_timeline_fini(&timeline);
    tarn_snapshot_destroy(snapshot);
}

static void tables_add_up(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mid_run);
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    (void)state;
    report_says(
        peak, &asked,
        "device 0\n"
        "peak: 1.50 KiB allocated, 1.86 KiB requested; 8.98 KiB reserved\n"
        "\n"
        "requested peak: 8.00 KiB reserved, 1.86 KiB requested, at event 1 of 8\n"
        "       bytes   share    blocks  allocated by\n"
        "       900 B   47.4%         1  x.py:1:leaf\\x1b < ... < u.py:2:user\n"
        "       700 B   36.8%         1  (not recorded)\n"
        "       300 B   15.8%         1  k.py:3:kept\n"
        "    1.86 KiB  100.0%         3  total\n"
        "    6.14 KiB          reserved but not requested: cached, between blocks, or lost to "
        "rounding\n"
        "      1000 B          of the total was allocated before the first event\n"
        "\n"
        "reserved peak: 8.98 KiB reserved, 1.17 KiB requested, at event 3 of 8\n"
        "       bytes   share    blocks  allocated by\n"
        "       900 B   75.0%         1  x.py:1:leaf\\x1b < ... < u.py:2:user\n"
        "       300 B   25.0%         1  k.py:3:kept\n"
        "    1.17 KiB  100.0%         2  total\n"
        "    7.80 KiB          reserved but not requested: cached, between blocks, or lost to "
        "rounding\n"
        "       300 B          of the total was allocated before the first event\n");
    tarn_snapshot_destroy(snapshot);
}

static void the_peak_in_numbers(void **state)
{
    struct tarn_snapshot *snapshot = report_parse(mid_run);
    const struct tarn_report_options options = {.struct_size = sizeof options, .rows = 1};
    struct tarn_peak_result *peaks;
    struct tarn_error error;
    size_t count;

    (void)state;
    assert_int_equal(tarn_peak_compute(snapshot, &options, &peaks, &count, &error), TARN_OK);
    assert_int_equal(count, 1);
    const struct tarn_composition *most = &peaks->requested_peak;

    assert_int_equal(most->at.event, 1);
    assert_int_equal(most->at.requested, 1900);
    assert_int_equal(most->at.reserved, 8192);
    assert_int_equal(most->unallocated, 8192 - 1900);
    assert_int_equal(most->holders.row_count, 1);
    assert_int_equal(most->holders.rows[0].bytes, 900);
    assert_int_equal(most->holders.rows[0].group.frame_count, 3);
    assert_string_equal(most->holders.rows[0].group.text, "x.py:1:leaf\\x1b < ... < u.py:2:user");
    assert_string_equal(most->holders.rows[0].group.frames[0].name, "leaf\x1b");
    assert_int_equal(most->holders.other_count, 2);
    assert_int_equal(most->holders.others.bytes, 1000);
    assert_int_equal(most->holders.others.blocks, 2);
    assert_int_equal(most->holders.others.bytes_before, 1000);
    assert_int_equal(most->holders.total.bytes, 1900);
    assert_int_equal(peaks->reserved_peak.at.reserved, 9192);
    tarn_report_destroy(peaks);
    tarn_snapshot_destroy(snapshot);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_load("cudagraph");
    struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};
    struct tarn_error error;
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};

    (void)state;
    assert_true(report_fails_cleanly(peak, &asked) >= 10);
    report_is_refused(peak, &asked);
    asked.options.one_device = true;
    asked.options.device = 1;
    assert_int_equal(peak(&asked, &writer, &error), TARN_ERR_NOT_FOUND);
    tarn_snapshot_destroy(snapshot);
    snapshot = report_load("oom.before");
    asked.snapshot = snapshot;
    assert_int_equal(peak(&asked, &writer, &error), TARN_ERR_NOT_SUPPORTED);
    assert_null(collect.text);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* max_memory_allocated() and max_memory_reserved() of the recorded runs, by PyTorch. */
static void peaks_are_those_of_pytorch(void **state)
{
    static const struct {
        const char *name;
        uint64_t allocated;
        uint64_t requested;
        uint64_t reserved;
    } runs[] = {{"gpt2_varlen", 10444095488, 10432354568, 11580473344},
                {"resnet_sizes", 7168784384, 7160942608, 9781116928},
                {"multistream", 906568704, 898801672, 1950351360},
                {"oom", 6863382528, 6857570144, 7488929792},
                {"cudagraph", 475030528, 469295120, 652214272},
                {"tiny", 50334208, 50332675, 54525952}};

    (void)state;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        struct tarn_snapshot *snapshot = report_load(runs[i].name);
        struct tarn_info_result *info = NULL;
        struct tarn_peak_result *result = NULL;
        size_t count;

        assert_int_equal(tarn_peak_compute(snapshot, NULL, &result, &count, NULL), TARN_OK);
        assert_int_equal(tarn_info_compute(snapshot, NULL, &info, NULL), TARN_OK);
        assert_int_equal(result->allocated_peak, runs[i].allocated);
        assert_int_equal(result->whole_peak.requested, runs[i].requested);
        assert_int_equal(result->whole_reserved_peak, runs[i].reserved);
        assert_int_equal(info->devices[0].allocated_peak, runs[i].allocated);
        assert_int_equal(info->devices[0].reserved_peak, runs[i].reserved);
        tarn_report_destroy(info);
        tarn_report_destroy(result);
        tarn_snapshot_destroy(snapshot);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peaks_are_those_of_pytorch),
        cmocka_unit_test(peaks_equal_the_counters_of_the_runs),
        cmocka_unit_test(lifetimes_add_up_at_every_entry),
        cmocka_unit_test(a_trace_that_begins_in_mid_run),
        cmocka_unit_test(tables_add_up),
        cmocka_unit_test(the_peak_in_numbers),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
