/* SPDX-License-Identifier: MIT */
#include "support/collect.h"
#include "support/file.h"

#include "tarn/host.h"
#include "tarn/report.h"

static const char *const names[] = {"tiny",         "gpt2_varlen",   "gpt2_varlen_expandable",
                                    "resnet_sizes", "multistream",   "cudagraph",
                                    "oom",          "llama_generate"};

static struct tarn_snapshot *load(const char *name)
{
    char path[1024];
    struct tarn_snapshot *snapshot;

    (void)snprintf(path, sizeof path, "%s/snapshots/%s.pickle.gz", TEST_DATA_DIR, name);
    assert_int_equal(tarn_snapshot_load(path, NULL, &snapshot, NULL), TARN_OK);
    return snapshot;
}

static void stats_equal_the_goldens(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char golden_name[128];
        struct test_collect collect = {0};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tarn_snapshot *snapshot = load(names[i]);

        (void)snprintf(golden_name, sizeof golden_name, "snapshots/%s.stats.txt", names[i]);
        struct test_file golden = test_file_read(golden_name);
        assert_int_equal(tarn_report_stats(snapshot, TARN_UNITS_IEC, &writer, NULL), TARN_OK);
        assert_string_equal(collect.text, (char *)golden.bytes);
        free(golden.bytes);
        free(collect.text);
        tarn_snapshot_destroy(snapshot);
    }
}

static void a_refusing_writer_stops_the_report(void **state)
{
    struct tarn_error error;
    struct test_collect collect = {.room = 10};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_snapshot *snapshot = load("cudagraph");

    (void)state;
    assert_int_equal(tarn_report_stats(snapshot, TARN_UNITS_IEC, &writer, &error), TARN_ERR_IO);
    assert_int_equal(error.status, TARN_ERR_IO);
    free(collect.text);
    tarn_snapshot_destroy(snapshot);
}

static void every_host_failure_is_reported(void **state)
{
    struct tarn_snapshot *snapshot = load("cudagraph");
    const uint64_t live = tarn_host_get_usage().live_bytes;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; status != TARN_OK; n++) {
        struct test_collect collect = {0};
        const struct tarn_writer writer = {test_collect_write, &collect};

        tarn_host_fail_nth(n);
        status = tarn_report_stats(snapshot, TARN_UNITS_IEC, &writer, NULL);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        free(collect.text);
    }
    tarn_snapshot_destroy(snapshot);
}

/* [{'address': 4096, 'total_size': N, 'blocks': [{'state': S, 'size': N2}]}] */
static struct tarn_snapshot *load_one_block(const char *total, const char *state, const char *size)
{
    char bytes[256] = "\x80\x02](}(X\x07\0\0\0";
    size_t used = 11;
    const struct {
        const char *text;
        size_t length;
    } pieces[] = {
        {"addressM\0\x10", 10},
        {"X\x0a\0\0\0total_size", 15},
        {total, 10},
        {"X\x06\0\0\0blocks](}(", 15},
        {"X\x05\0\0\0stateX\x10\0\0\0", 15},
        {state, 16},
        {"X\x04\0\0\0size", 9},
        {size, 10},
        {"ueue.", 5},
    };
    struct tarn_snapshot *snapshot;

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        memcpy(bytes + used, pieces[i].text, pieces[i].length);
        used += pieces[i].length;
    }
    assert_int_equal(tarn_snapshot_load_memory(bytes, used, NULL, &snapshot, NULL), TARN_OK);
    return snapshot;
}

static void odd_sizes_are_refused_not_drawn(void **state)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    static const char huge[] = "\x8a\x08\0\0\0\0\0\0\0\x10";
    static const char small[] = "\x8a\x08\0\0\x10\0\0\0\0\0";
    struct tarn_snapshot *snapshot = load_one_block(huge, "active_allocated", huge);

    (void)state;
    assert_int_equal(tarn_report_stats(snapshot, TARN_UNITS_IEC, &writer, NULL), TARN_ERR_LIMIT);
    tarn_snapshot_destroy(snapshot);
    snapshot = load_one_block(huge, "active_allocated", small);
    assert_int_equal(tarn_report_stats(snapshot, TARN_UNITS_IEC, &writer, NULL), TARN_ERR_MISMATCH);
    tarn_snapshot_destroy(snapshot);
    snapshot = load_one_block(small, "active_allocated", small);
    assert_int_equal(tarn_report_stats(snapshot, TARN_UNITS_IEC, &writer, NULL), TARN_OK);
    assert_non_null(strstr(collect.text, "total_allocated: 1.0MiB\ntotal_free: 0.0B\n"));
    tarn_snapshot_destroy(snapshot);
    free(collect.text);
}

static void nothing_leaks(void **state)
{
    (void)state;
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stats_equal_the_goldens),
        cmocka_unit_test(a_refusing_writer_stops_the_report),
        cmocka_unit_test(every_host_failure_is_reported),
        cmocka_unit_test(odd_sizes_are_refused_not_drawn),
        cmocka_unit_test(nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
