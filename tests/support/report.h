/* SPDX-License-Identifier: MIT */
/* What tests of reports share: snapshots to report on, and what must hold for each report. */
#ifndef TESTS_SUPPORT_REPORT_H
#define TESTS_SUPPORT_REPORT_H

#include "support/collect.h"
#include "support/file.h"
#include "tarn/host.h"
#include "tarn/report.h"

/* A recorded snapshot, by the name of its file without what it ends in. */
static inline struct tarn_snapshot *report_load(const char *name)
{
    char path[1024];
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    (void)snprintf(path, sizeof path, "%s/snapshots/%s.pickle.gz", TEST_DATA_DIR, name);
    if (tarn_snapshot_load(path, NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

/* A snapshot from JSON, in which ' stands for ". */
static inline struct tarn_snapshot *report_parse(const char *json)
{
    const size_t size = strlen(json);
    char *text = malloc(size + 1);
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    assert_non_null(text);
    for (size_t i = 0; i <= size; i++) {
        text[i] = (char)(json[i] == '\'' ? '"' : json[i]);
    }
    if (tarn_snapshot_load_memory(text, size, NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    free(text);
    return snapshot;
}

/* A report under test, as a function of a writer. */
typedef enum tarn_status report_function(const void *context, const struct tarn_writer *writer,
                                         struct tarn_error *error);

/* The context of most: what to report on, and how. */
struct report_asked {
    const struct tarn_snapshot *snapshot;
    struct tarn_report_options options;
};

/* The report's text; free with free(). */
static inline char *report_text(report_function *report, const void *context)
{
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    if (report(context, &writer, &error)) {
        fail_msg("%s", error.text);
    }
    return collect.text;
}

static inline void report_says(report_function *report, const void *context, const char *expected)
{
    char *text = report_text(report, context);

    assert_string_equal(text, expected);
    free(text);
}

/* Every host allocation fails once: the report says so, and nothing leaks. Returns how many there
 * were. */
static inline uint64_t report_fails_cleanly(report_function *report, const void *context)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    enum tarn_status status = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;

    while (status != TARN_OK) {
        struct test_collect collect = {0};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tarn_error error = {.status = TARN_OK};

        tarn_host_fail_nth(++n);
        status = report(context, &writer, &error);
        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK || status == TARN_ERR_HOST_MEMORY);
        assert_int_equal(error.status, status);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        free(collect.text);
    }
    return n - 1;
}

/* The same for reports that can do without some of them: then they write what they write otherwise.
 * Returns how many there were. */
static inline uint64_t report_fails_or_copes(report_function *report, const void *context)
{
    const uint64_t begin = tarn_host_get_usage().alloc_calls;
    char *right = report_text(report, context);
    const uint64_t calls = tarn_host_get_usage().alloc_calls - begin;
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; n <= calls; n++) {
        struct test_collect collect = {.text = calloc(1, 1)};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tarn_error error = {.status = TARN_OK};

        tarn_host_fail_nth(n);
        const enum tarn_status status = report(context, &writer, &error);

        tarn_host_fail_nth(0);
        assert_true(status == TARN_OK ? strcmp(collect.text, right) == 0
                                      : status == TARN_ERR_HOST_MEMORY);
        assert_int_equal(error.status, status);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
        free(collect.text);
    }
    free(right);
    return calls;
}

/* A writer that refuses after some bytes: the report returns what it returned. */
static inline void report_is_refused(report_function *report, const void *context)
{
    struct test_collect collect = {.room = 20};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error = {.status = TARN_OK};
    const uint64_t live = tarn_host_get_usage().live_bytes;

    assert_int_equal(report(context, &writer, &error), TARN_ERR_IO);
    assert_int_equal(error.status, TARN_ERR_IO);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    free(collect.text);
}

/* Both, on a recorded snapshot with default options; there are `least` host allocations or more. */
static inline void report_leaves_nothing(report_function *report, const char *name, uint64_t least)
{
    struct tarn_snapshot *snapshot = report_load(name);
    const struct report_asked asked = {snapshot, {.struct_size = sizeof asked.options}};

    assert_true(report_fails_cleanly(report, &asked) >= least);
    report_is_refused(report, &asked);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

#endif
