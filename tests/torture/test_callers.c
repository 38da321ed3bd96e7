/* SPDX-License-Identifier: MIT */
/*
 * Callers that give little, through the public headers: NULL where options may be left out is the
 * same as options without anything in them, and a struct of an older caller, which is shorter, is
 * neither read nor written behind its end.
 */
#include "support/collect.h"
#include "support/sim.h"
#include "support/test.h"

#include "tarn/export.h"
#include "tarn/fleet.h"
#include "tarn/history.h"
#include "tarn/replay.h"
#include "tarn/report.h"
#include "tarn/viewer.h"
#include "tarn/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct tarn_snapshot *small;
    struct tarn_snapshot *graph;
    struct tarn_replay *replay; /* of `graph` */
} given;

static struct tarn_snapshot *load(const char *name)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.text = ""};
    char path[512];

    (void)snprintf(path, sizeof path, "%s/snapshots/%s", TEST_DATA_DIR, name);
    if (tarn_snapshot_load(path, NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    return snapshot;
}

static int begin(void **state)
{
    (void)state;
    given.small = load("tiny.pickle.gz");
    given.graph = load("cudagraph.pickle.gz");
    return (int)tarn_replay_create(given.graph, -1, &given.replay, NULL);
}

static int end(void **state)
{
    (void)state;
    tarn_replay_destroy(given.replay);
    tarn_snapshot_destroy(given.graph);
    tarn_snapshot_destroy(given.small);
    return 0;
}

/* ---- options that are left out ---- */

#define EMPTY(type) (&(const struct type){.struct_size = sizeof(struct type)})

typedef enum tarn_status report_function(const struct tarn_snapshot *snapshot,
                                         const struct tarn_report_options *options,
                                         const struct tarn_writer *writer,
                                         struct tarn_error *error);

static enum tarn_status view(bool without, const struct tarn_writer *writer)
{
    return tarn_view_write(given.small, without ? NULL : EMPTY(tarn_view_options), writer, NULL);
}

static enum tarn_status view_empty(bool without, const struct tarn_writer *writer)
{
    const enum tarn_status status =
        tarn_view_write_empty(without ? NULL : EMPTY(tarn_view_options), writer, NULL);

    return status == TARN_ERR_NOT_SUPPORTED /* this build has no reader to put into a page */
               ? writer->write(writer->context, "none", 4)
               : status;
}

static enum tarn_status diff(bool without, const struct tarn_writer *writer)
{
    return tarn_report_diff(given.small, given.graph, without ? NULL : EMPTY(tarn_report_options),
                            without ? NULL : EMPTY(tarn_diff_options), writer, NULL, NULL);
}

static enum tarn_status flame_at(bool without, const struct tarn_writer *writer)
{
    return tarn_report_flame_at(given.graph, without ? NULL : EMPTY(tarn_report_options),
                                without ? NULL : EMPTY(tarn_flame_at_options), writer, NULL);
}

static enum tarn_status flame(bool without, const struct tarn_writer *writer)
{
    return tarn_report_flame(given.graph, TARN_FLAME_SEGMENTS,
                             without ? NULL : EMPTY(tarn_flame_options), writer, NULL);
}

static enum tarn_status compare(bool without, const struct tarn_writer *writer)
{
    return tarn_report_compare(given.small, given.graph, without ? NULL : EMPTY(tarn_flame_options),
                               writer, NULL);
}

static enum tarn_status export(bool without, const struct tarn_writer *writer) {
    return tarn_export(given.graph, TARN_EXPORT_JSON, without ? NULL : EMPTY(tarn_export_options),
                       writer, NULL);
}

static enum tarn_status fleet(bool without, const struct tarn_writer *writer)
{
    struct tarn_fleet *made = NULL;

    assert_int_equal(tarn_fleet_create(&made, NULL), TARN_OK);
    assert_int_equal(
        tarn_fleet_add(made, given.small, "a", without ? NULL : EMPTY(tarn_summary_options), NULL),
        TARN_OK);
    assert_int_equal(
        tarn_fleet_add(made, given.graph, "b", without ? NULL : EMPTY(tarn_summary_options), NULL),
        TARN_OK);
    const enum tarn_status status =
        tarn_fleet_report(made, without ? NULL : EMPTY(tarn_report_options),
                          without ? NULL : EMPTY(tarn_fleet_options), writer, NULL);

    tarn_fleet_destroy(made);
    return status;
}

/* One of them. */
struct job {
    report_function *report;
    enum tarn_status (*run)(bool without, const struct tarn_writer *writer);
};

static struct test_collect job_run(const struct job *job, bool without)
{
    struct tarn_error error = {.text = ""};
    struct test_collect text = {.text = NULL};
    const struct tarn_writer writer = {test_collect_write, &text};
    const enum tarn_status status =
        job->report
            ? job->report(given.graph, without ? NULL : EMPTY(tarn_report_options), &writer, &error)
            : job->run(without, &writer);

    if (status) {
        fail_msg("status %d: %s", (int)status, error.text);
    }
    assert_true(text.size > 0);
    return text;
}

static void options_may_be_left_out(void **state)
{
    static const struct job jobs[] = {
        {.report = tarn_report_peak},
        {.report = tarn_report_top},
        {.report = tarn_report_live},
        {.report = tarn_report_oom},
        {.report = tarn_report_churn},
        {.report = tarn_report_frag},
        {.report = tarn_report_leaks},
        {.report = tarn_report_steps},
        {.report = tarn_report_info},
        {.run = view},
        {.run = view_empty},
        {.run = diff},
        {.run = flame_at},
        {.run = flame},
        {.run = compare},
        {.run = export},
        {.run = fleet},
    };

    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        const struct test_collect with = job_run(&jobs[i], false);
        const struct test_collect without = job_run(&jobs[i], true);

        assert_int_equal(with.size, without.size);
        assert_memory_equal(with.text, without.text, with.size);
        free(with.text);
        free(without.text);
    }
}

static void a_search_needs_no_options(void **state)
{
    const struct tarn_replay *const replays[] = {given.replay};
    struct tarn_tune_row rows[2][3];
    size_t counts[2] = {0};

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tarn_replay_tune(replays, 1, i == 0 ? NULL : EMPTY(tarn_tune_options),
                                          rows[i], 3, &counts[i], NULL),
                         TARN_OK);
    }
    assert_int_equal(counts[0], counts[1]);
    for (size_t i = 0; i < counts[0]; i++) {
        assert_string_equal(rows[0][i].conf, rows[1][i].conf);
    }
}

/* Many ranks have the forms of tables alone. */
static void other_forms_of_many_ranks_are_refused(void **state)
{
    static const enum tarn_export_format forms[] = {TARN_EXPORT_JSON, TARN_EXPORT_PICKLE,
                                                    TARN_EXPORT_PERFETTO, TARN_EXPORT_SPEEDSCOPE,
                                                    TARN_EXPORT_FOLDED};
    struct tarn_fleet *made = NULL;
    struct test_collect text = {.text = NULL};
    const struct tarn_writer writer = {test_collect_write, &text};

    (void)state;
    assert_int_equal(tarn_fleet_create(&made, NULL), TARN_OK);
    assert_int_equal(tarn_fleet_add(made, given.small, "a", NULL, NULL), TARN_OK);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct tarn_error error = {.text = ""};

        assert_int_equal(tarn_export_fleet(made, forms[i], NULL, &writer, &error),
                         TARN_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(error.text, "jsonl, csv or sqlite"));
    }
    assert_int_equal(text.size, 0);
    tarn_fleet_destroy(made);
}

/* ---- older callers ---- */

/* Everything behind the first `size` bytes is as it was. */
static void expect_untouched(const void *bytes, size_t size, size_t whole)
{
    for (size_t i = size; i < whole; i++) {
        assert_int_equal(((const unsigned char *)bytes)[i], 0xa5);
    }
}

/* A struct of an older caller: its first `size` bytes are asked for. */
#define OLDER(name, type, size)                                                                    \
    struct type name;                                                                              \
    memset(&name, 0xa5, sizeof name);                                                              \
    name.struct_size = (uint32_t)(size)

static void what_is_returned_ends_where_the_caller_s_struct_does(void **state)
{
    struct tarn_replay_info whole = {.struct_size = sizeof whole};
    const size_t info_size = offsetof(struct tarn_replay_info, ooms);
    const size_t scale_size = offsetof(struct tarn_scale_info, bytes_selected);
    const struct tarn_scale_rule rule = {.what = TARN_SCALE_MATCH, .pattern = "py", .factor = 2};
    struct tarn_history *history = NULL;
    struct tarn_replay *scaled = NULL;

    (void)state;
    OLDER(info, tarn_replay_info, info_size);
    tarn_replay_get_info(given.replay, &whole);
    tarn_replay_get_info(given.replay, &info);
    assert_int_equal(info.entries, whole.entries);
    assert_int_equal(info.allocations, whole.allocations);
    expect_untouched(&info, info_size, sizeof info);

    OLDER(scale, tarn_scale_info, scale_size);
    assert_int_equal(tarn_replay_scale(given.replay, given.graph, &rule, 1, &scaled, &scale, NULL),
                     TARN_OK);
    tarn_replay_destroy(scaled);
    expect_untouched(&scale, scale_size, sizeof scale);
    assert_int_equal(tarn_replay_scale(given.replay, NULL, &rule, 1, &scaled, NULL, NULL),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_replay_scale(given.replay, given.small, &rule, 1, &scaled, NULL, NULL),
                     TARN_ERR_INVALID_ARGUMENT);

    const size_t usage_size = offsetof(struct tarn_history_usage, annotations);

    OLDER(usage, tarn_history_usage, usage_size);
    assert_int_equal(tarn_history_create(NULL, &history, NULL), TARN_OK);
    tarn_history_get_usage(history, &usage);
    assert_int_equal(usage.entries, 0);
    expect_untouched(&usage, usage_size, sizeof usage);
    tarn_history_destroy(history);
}

static void what_is_given_ends_there_as_well(void **state)
{
    const struct tarn_replay *const replays[] = {given.replay};
    const struct tarn_tune_options tune_plain = {.struct_size = sizeof tune_plain, .tries = 3};
    struct tarn_replay_result results[2] = {{.struct_size = sizeof *results},
                                            {.struct_size = sizeof *results}};
    struct tarn_tune_row rows[2][2];
    size_t counts[2];

    (void)state;
    OLDER(tune, tarn_tune_options, offsetof(struct tarn_tune_options, tries) + sizeof tune.tries);
    memset((char *)&tune + sizeof tune.struct_size, 0,
           tune.struct_size - sizeof tune.struct_size); /* behind it there is something */
    tune.tries = 3;
    assert_int_equal(tarn_replay_tune(replays, 1, &tune_plain, rows[0], 2, &counts[0], NULL),
                     TARN_OK);
    assert_int_equal(tarn_replay_tune(replays, 1, &tune, rows[1], 2, &counts[1], NULL), TARN_OK);
    assert_int_equal(counts[0], counts[1]);
    assert_string_equal(rows[0][1].conf, rows[1][1].conf);

    OLDER(how, tarn_replay_options, offsetof(struct tarn_replay_options, conf) + sizeof how.conf);
    how.conf = "expandable_segments:True";
    const struct tarn_replay_options plain = {.struct_size = sizeof plain, .conf = how.conf};

    assert_int_equal(tarn_replay_run(given.replay, &plain, &results[0], NULL), TARN_OK);
    assert_int_equal(tarn_replay_run(given.replay, &how, &results[1], NULL), TARN_OK);
    assert_int_equal(results[0].operations, results[1].operations);
    assert_int_equal(results[0].stats.num_device_alloc, results[1].stats.num_device_alloc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_may_be_left_out),
        cmocka_unit_test(a_search_needs_no_options),
        cmocka_unit_test(other_forms_of_many_ranks_are_refused),
        cmocka_unit_test(what_is_returned_ends_where_the_caller_s_struct_does),
        cmocka_unit_test(what_is_given_ends_there_as_well),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
