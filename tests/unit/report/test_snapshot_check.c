/* SPDX-License-Identifier: MIT */
#include "support/report.h"

#include "tarn/report.h"

static void recorded_runs_agree_with_themselves(void **state)
{
    static const char *const names[] = {
        "tiny",        "tiny.before",  "cudagraph",      "gpt2_varlen_expandable",
        "multistream", "resnet_sizes", "llama_generate", "oom"};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct tarn_findings findings = TARN_FINDINGS_INIT;
        struct tarn_snapshot *snapshot = report_load(names[i]);

        assert_int_equal(tarn_snapshot_check(snapshot, &findings, NULL), TARN_OK);
        if (findings.count > 0) {
            fail_msg("%s: %s", names[i], findings.text[0]);
        }
        tarn_snapshot_destroy(snapshot);
    }
}

/* The snapshot has this one contradiction. */
static void finds(const char *json, const char *expected)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_snapshot *snapshot = report_parse(json);

    assert_int_equal(tarn_snapshot_check(snapshot, &findings, NULL), TARN_OK);
    assert_string_equal(findings.text[0], expected);
    assert_int_equal(findings.count, 1);
    tarn_snapshot_destroy(snapshot);
}

#define SEGMENT(address, size, block)                                                              \
    "{'address': " address ", 'total_size': " size ", 'blocks': [" block "]}"

static void every_contradiction(void **state)
{
    (void)state;
    finds("[" SEGMENT("100", "8", "{'size': 4, 'state': 'inactive'}") "]",
          "segment 100: its blocks end at 104, it ends at 108");
    finds("[" SEGMENT("100", "8",
                      "{'size': 4, 'state': 'inactive'},"
                      "{'address': 103, 'size': 5, 'state': 'inactive'}") "]",
          "segment 100: block 1 begins at 103, the previous one ends at 104");
    finds("[" SEGMENT("100", "8",
                      "{'size': 8, 'requested_size': 9, 'state': 'active_allocated'}") "]",
          "segment 100: block 0 has 8 bytes, less than the 9 requested");
    finds("[{'address': 1, 'total_size': 8, 'allocated_size': 7, 'active_size': 8, 'blocks':"
          " [{'size': 8, 'requested_size': 8, 'state': 'active_allocated'}]}]",
          "segment 1: allocated 7 and active 8 bytes, its blocks add up to 8 and 8");
    finds("[{'address': 1, 'total_size': 8, 'allocated_size': 8, 'active_size': 7, 'blocks':"
          " [{'size': 8, 'requested_size': 8, 'state': 'active_allocated'}]}]",
          "segment 1: allocated 8 and active 7 bytes, its blocks add up to 8 and 8");
    finds("[" SEGMENT("100", "8", "{'size': 8, 'state': 'inactive'}") "," SEGMENT(
              "107", "8", "{'size': 8, 'state': 'inactive'}") "]",
          "device 0: the segments 100 and 107 overlap");
    finds("{'segments': [], 'device_traces': [["
          "{'action': 'snapshot', 'addr': 0, 'size': 0, 'stream': 0, 'time_us': 5},"
          "{'action': 'snapshot', 'addr': 0, 'size': 0, 'stream': 0, 'time_us': 4}]]}",
          "device 0: time runs backwards 1 times, first at event 1");
    finds("{'segments': [], 'device_traces': [["
          "{'action': 'alloc', 'addr': 9, 'size': 1, 'stream': 0},"
          "{'action': 'alloc', 'addr': 9, 'size': 1, 'stream': 0},"
          "{'action': 'free_completed', 'addr': 9, 'size': 1, 'stream': 0}]]}",
          "device 0: the trace allocates allocated memory 1 times");
    finds("{'segments': [], 'device_traces': [["
          "{'action': 'free_completed', 'addr': 9, 'size': 1, 'stream': 0},"
          "{'action': 'free_completed', 'addr': 9, 'size': 1, 'stream': 0}]]}",
          "device 0: the trace frees free memory 1 times");
    finds("{'segments': [" SEGMENT(
              "8", "4",
              "{'size': 4, 'requested_size': 3,"
              " 'state': 'active_allocated'}") "],"
                                               " 'device_traces': [[{'action': 'alloc', 'addr': 8, "
                                               "'size': 4, 'stream': 0}]]}",
          "device 0: 1 blocks of 4 bytes that the trace leaves allocated are not in the segments "
          "with "
          "that size");
}

/* Each device has addresses of its own; segments come in any order. */
static void devices_do_not_overlap(void **state)
{
#define ON(device, address)                                                                        \
    "{'device': " device ", 'address': " address ", 'total_size': 8, 'blocks':"                    \
    " [{'size': 8, 'state': 'inactive'}]}"
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_snapshot *snapshot = report_parse(
        "[" ON("1", "100") "," ON("0", "108") "," ON("1", "92") "," ON("0", "100") "]");

    (void)state;
    assert_int_equal(tarn_snapshot_check(snapshot, &findings, NULL), TARN_OK);
    assert_int_equal(findings.count, 0);
    tarn_snapshot_destroy(snapshot);
    finds("[" ON("1", "100") "," ON("0", "100") "," ON("1", "100") "]",
          "device 1: the segments 100 and 100 overlap");
    finds("[" ON("1", "100") "," ON("0", "100") "," ON("1", "93") "]",
          "device 1: the segments 93 and 100 overlap");
#undef ON
}

#define MAPPED(action, address)                                                                    \
    "{'action': '" action "', 'addr': " address ", 'size': 4096, 'stream': 0}"
#define ALLOCATED(address)  "{'action': 'alloc', 'addr': " address ", 'size': 1024, 'stream': 0}"
#define ONLY_TRACE(entries) "{'segments': [], 'device_traces': [[" entries "]]}"
#define MISSING                                                                                    \
    "device 0: 1 blocks of 1024 bytes that the trace leaves allocated are not in the segments "    \
    "with that size"

/* What sleeps is allocated and in no segment. */
static void memory_that_sleeps_is_no_contradiction(void **state)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_snapshot *snapshot =
        report_parse(ONLY_TRACE(MAPPED("segment_map", "4096") "," ALLOCATED("6144") "," MAPPED(
            "segment_unmap", "4096") "," MAPPED("segment_map", "8192") "," MAPPED("segment_unmap",
                                                                                  "8192")));

    (void)state;
    assert_int_equal(tarn_snapshot_check(snapshot, &findings, NULL), TARN_OK);
    assert_int_equal(findings.count, 0);
    tarn_snapshot_destroy(snapshot);
    finds(ONLY_TRACE(MAPPED("segment_unmap", "4096") "," ALLOCATED("6144")), MISSING);
    finds(ONLY_TRACE(ALLOCATED("6144") "," MAPPED("segment_unmap", "4096") "," MAPPED("segment_map",
                                                                                      "4096")),
          MISSING);
    finds(ONLY_TRACE(ALLOCATED("6144") "," MAPPED("segment_unmap", "8192")), MISSING);
    finds(ONLY_TRACE(ALLOCATED("6144") "," MAPPED("segment_free", "4096")), MISSING);
}

/* A block at the last address is no key of a table: it is not looked for, and hides no others. */
static void the_last_address_is_passed_over(void **state)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct tarn_snapshot *snapshot = report_parse(
        "{'segments': [{'address': 18446744073709551615, 'total_size': 0, 'blocks': ["
        "{'address': 18446744073709551615, 'size': 0, 'requested_size': 0,"
        " 'state': 'active_allocated'}]},"
        "{'address': 6144, 'total_size': 1024, 'allocated_size': 1024, 'active_size': 1024,"
        " 'blocks': [{'address': 6144, 'size': 1024, 'requested_size': 1024,"
        " 'state': 'active_allocated'}]}], 'device_traces': [[" ALLOCATED("6144") "]]}");

    (void)state;
    assert_int_equal(tarn_snapshot_check(snapshot, &findings, NULL), TARN_OK);
    for (uint64_t i = 0; i < findings.count; i++) {
        print_message("%s\n", findings.text[i]);
    }
    assert_int_equal(findings.count, 0);
    tarn_snapshot_destroy(snapshot);
}

/* A file may be made to take long: from some entry on nobody looks whether a block sleeps. */
static void a_search_for_sleepers_has_an_end(void **state)
{
    enum {
        COUNT = 4600
    };
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    char *json = malloc(COUNT * 80 + 512);
    size_t used = (size_t)snprintf(json, 64, "{'segments': [], 'device_traces': [[");
    char expected[256];

    (void)state;
    for (int i = 0; i < COUNT; i++) { /* the last one sleeps */
        used += (size_t)snprintf(json + used, 256,
                                 "{'action': 'alloc', 'addr': %d, 'size': 512, 'stream': 0},",
                                 (i + 1) * 4096);
    }
    (void)snprintf(json + used, 256,
                   "{'action': 'segment_unmap', 'addr': %d, 'size': 4096, 'stream': 0}]]}",
                   COUNT * 4096);
    struct tarn_snapshot *snapshot = report_parse(json);

    assert_int_equal(tarn_snapshot_check(snapshot, &findings, NULL), TARN_OK);
    (void)snprintf(expected, sizeof expected,
                   "device 0: %d blocks of %d bytes that the trace leaves allocated are not in the "
                   "segments with that size",
                   COUNT, COUNT * 512);
    assert_string_equal(findings.text[0], expected);
    assert_int_equal(findings.count, 1);
    tarn_snapshot_destroy(snapshot);
    free(json);
}

static enum tarn_status check(const void *context, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)writer;
    return tarn_snapshot_check(context, &findings, error);
}

static void failures_leave_nothing(void **state)
{
    struct tarn_snapshot *snapshot = report_load("cudagraph");

    (void)state;
    assert_true(report_fails_cleanly(check, snapshot) >= 5);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recorded_runs_agree_with_themselves),
        cmocka_unit_test(every_contradiction),
        cmocka_unit_test(devices_do_not_overlap),
        cmocka_unit_test(memory_that_sleeps_is_no_contradiction),
        cmocka_unit_test(the_last_address_is_passed_over),
        cmocka_unit_test(a_search_for_sleepers_has_an_end),
        cmocka_unit_test(failures_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
