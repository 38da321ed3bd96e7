/* SPDX-License-Identifier: MIT */
/*
 * Odd, damaged and hostile files (the corpora of the fuzz targets, tests/data/hostile) through the
 * readers, and what was read through every report, export, page and replay: each time as it is, and
 * then with host allocations failing, those that were not made from the same place before. Then
 *
 *   - whatever fails says so, and how, and of a failing allocation that it was that;
 *   - nothing leaks;
 *   - what is written is what is written without a failure;
 *   - a snapshot that was written as a pickle reads as the same one.
 */
#include "support/alloc_places.h"
#include "support/collect.h"
#include "support/file.h"
#include "support/temp.h"
#include "support/test.h"

#include "tarn/export.h"
#include "tarn/fleet.h"
#include "tarn/host.h"
#include "tarn/profile.h"
#include "tarn/replay.h"
#include "tarn/report.h"
#include "tarn/tracker.h"
#include "tarn/trim.h"
#include "tarn/verify.h"
#include "tarn/viewer.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- jobs ---- */

struct job;

typedef enum tarn_status run_function(const struct job *job, const struct tarn_writer *writer,
                                      struct tarn_error *error);

typedef enum tarn_status report_function(const struct tarn_snapshot *snapshot,
                                         const struct tarn_report_options *options,
                                         const struct tarn_writer *writer,
                                         struct tarn_error *error);

struct job {
    run_function *run;
    report_function *report; /* of run_report */
    int form;                /* means something to `run` */
    const char *path;        /* of a reader */
    const struct tarn_snapshot *snapshot;
};

struct outcome {
    enum tarn_status status;
    struct tarn_error error;
    struct test_collect text;
};

static struct outcome job_run(const struct job *job)
{
    struct outcome outcome = {.error = {.status = TARN_OK}};
    const struct tarn_writer writer = {test_collect_write, &outcome.text};

    outcome.status = job->run(job, &writer, &outcome.error);
    return outcome;
}

static struct {
    uint64_t jobs;
    uint64_t refused;  /* without a failing allocation */
    uint64_t failures; /* of allocations that were reported */
} done;

static void expect_said(const struct job *job, const struct outcome *outcome)
{
    if (outcome->status != TARN_OK &&
        (outcome->error.status != outcome->status || outcome->error.text[0] == '\0' ||
         outcome->status == TARN_ERR_INTERNAL)) {
        fail_msg("%s: returned %d, error %d: %s", job->path, (int)outcome->status,
                 (int)outcome->error.status, outcome->error.text);
    }
}

/* Of a file that is cut there may be less without memory. */
static bool is_cut(const struct outcome *outcome, const struct outcome *right)
{
    return outcome->status == TARN_ERR_TRUNCATED && right->status == TARN_ERR_TRUNCATED;
}

static void allocation_fails(const struct job *job, const struct outcome *right, uint64_t n)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;

    tarn_host_fail_nth(n);
    const struct outcome outcome = job_run(job);

    tarn_host_fail_nth(0);
    if (tarn_host_get_usage().live_bytes != live) {
        fail_msg("%s, allocation %llu: memory leaks", job->path, (unsigned long long)n);
    }
    expect_said(job, &outcome);
    done.failures += outcome.status == TARN_ERR_HOST_MEMORY;
    if (outcome.status != TARN_ERR_HOST_MEMORY && !is_cut(&outcome, right) &&
        (outcome.status != right->status || outcome.text.size != right->text.size ||
         (right->text.size > 0 &&
          memcmp(outcome.text.text, right->text.text, right->text.size) != 0))) {
        fail_msg("%s, allocation %llu: returned %d, not %d", job->path, (unsigned long long)n,
                 (int)outcome.status, (int)right->status);
    }
    free(outcome.text.text);
}

/* Runs it as it is, and once for each place that allocates and is new; free the text. */
static struct outcome job_fails(const struct job *job)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;

    places.begin = tarn_host_get_usage().alloc_calls;
    places.fresh_count = 0;
    places.is_on = true;
    const struct outcome right = job_run(job);

    places.is_on = false;
    done.jobs++;
    done.refused += right.status != TARN_OK;
    expect_said(job, &right);
    if (tarn_host_get_usage().live_bytes != live) {
        fail_msg("%s: memory leaks", job->path);
    }
    for (size_t i = 0; i < places.fresh_count; i++) {
        allocation_fails(job, &right, places.fresh[i]);
    }
    return right;
}

/* ---- readers ---- */

static enum tarn_status snapshot_load(const char *path, bool is_profile,
                                      struct tarn_snapshot **snapshot_out, struct tarn_error *error)
{
    const struct tarn_read_limits limits = {
        .struct_size = sizeof limits, .max_memory = 64 << 20, .max_bytes = 16 << 20};

    return is_profile ? tarn_profile_load(path, &limits, snapshot_out, NULL, error)
                      : tarn_snapshot_load(path, &limits, snapshot_out, error);
}

static enum tarn_status load(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    struct tarn_snapshot *loaded = NULL;
    const enum tarn_status status = snapshot_load(job->path, job->form == 1, &loaded, error);

    assert_true(loaded || status != TARN_OK);
    const enum tarn_status written =
        loaded ? tarn_snapshot_write(loaded, TARN_SNAPSHOT_JSON, writer, error) : TARN_OK;

    assert_true(!loaded || tarn_snapshot_is_partial(loaded) == (status != TARN_OK));
    tarn_snapshot_destroy(loaded);
    return written ? written : status;
}

static enum tarn_status verify(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error)
{
    struct tarn_verify_result result = {.struct_size = sizeof result};
    const enum tarn_status status = tarn_verify_log(job->path, NULL, &result, error);

    return status ? status : writer->write(writer->context, result.first, strlen(result.first) + 1);
}

static enum tarn_status verify_snapshot(const struct job *job, const struct tarn_writer *writer,
                                        struct tarn_error *error)
{
    struct tarn_snapshot *made = NULL;
    enum tarn_status status = tarn_verify_snapshot(job->path, &made, error);

    if (status == TARN_OK) {
        status = tarn_snapshot_write(made, TARN_SNAPSHOT_JSON, writer, error);
        tarn_snapshot_destroy(made);
    }
    return status;
}

static enum tarn_status track(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    struct tarn_track_replay result = {.struct_size = sizeof result};
    struct tarn_findings findings = {.count = 0};
    struct tarn_tracker *tracker = NULL;
    enum tarn_status status = tarn_tracker_create(NULL, &tracker, error);

    if (status) {
        return status;
    }
    status = tarn_tracker_replay_log(tracker, job->path, NULL, &result, error);
    assert_int_equal(tarn_tracker_check(tracker, &findings), 0);
    if (status == TARN_OK) {
        status = tarn_tracker_write_json(tracker, true, writer, error);
    }
    if (status == TARN_OK) {
        status = tarn_tracker_write_tree(tracker, TARN_TRACK_PEAKS, 3, TARN_UNITS_MIB, 10, writer,
                                         error);
    }
    tarn_tracker_destroy(tracker);
    return status;
}

static enum tarn_status summary(const struct job *job, const struct tarn_writer *writer,
                                struct tarn_error *error)
{
    const struct tarn_report_options how = {
        .struct_size = sizeof how, .format = job->form ? TARN_REPORT_JSON : TARN_REPORT_TEXT};
    struct tarn_fleet *fleet = NULL;
    enum tarn_status status = tarn_fleet_create(&fleet, error);

    if (status) {
        return status;
    }
    status = tarn_fleet_load(fleet, job->path, NULL, error);
    if (status == TARN_OK) {
        status = tarn_fleet_report(fleet, &how, NULL, writer, error);
    }
    if (status == TARN_OK && job->form) {
        status = tarn_export_fleet(fleet, TARN_EXPORT_JSONL, NULL, writer, error);
    }
    if (status == TARN_OK && job->form) {
        status = tarn_view_write_ranks(fleet, NULL, NULL, writer, error);
    }
    tarn_fleet_destroy(fleet);
    return status;
}

static enum tarn_status rules(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    struct tarn_rules *loaded = NULL;
    struct tarn_suppressions *suppressions = NULL;
    const enum tarn_status status = job->form
                                        ? tarn_suppressions_load(job->path, &suppressions, error)
                                        : tarn_rules_load(job->path, &loaded, error);

    (void)writer;
    tarn_rules_destroy(loaded);
    tarn_suppressions_destroy(suppressions);
    return status;
}

static enum tarn_status where(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    char text[4096];
    FILE *in = fopen(job->path, "rb");
    struct tarn_where *parsed = NULL;

    (void)writer;
    assert_non_null(in);
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    (void)fclose(in);
    const enum tarn_status status = tarn_where_parse(text, &parsed, error);

    tarn_where_destroy(parsed);
    return status;
}

/* ---- of what was read ---- */

static enum tarn_status report(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error)
{
    static const enum tarn_grouping groupings[] = {TARN_BY_STACK, TARN_BY_STACK, TARN_BY_CATEGORY,
                                                   TARN_BY_STACK, TARN_BY_FRAME, TARN_BY_FUNCTION,
                                                   TARN_BY_FILE,  TARN_BY_LINE};
    /* Without some frames stacks are made anew. */
    const struct tarn_selection some = {.struct_size = sizeof some, .hide = "[a-f]$"};
    const struct tarn_report_options how = {.struct_size = sizeof how,
                                            .format = job->form == 1 ? TARN_REPORT_JSON
                                                                     : TARN_REPORT_TEXT,
                                            .by = groupings[job->form],
                                            .selection = job->form == 3 ? &some : NULL,
                                            .device_total = (uint64_t)80 << 30};

    return job->report(job->snapshot, &how, writer, error);
}

static enum tarn_status export(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error) {
    return tarn_export(job->snapshot, (enum tarn_export_format)job->form, NULL, writer, error);
}

static enum tarn_status view(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct tarn_view_options how = {.struct_size = sizeof how,
                                          .redact = job->form == 1 ? TARN_VIEW_REDACT_ALL
                                                                   : TARN_VIEW_REDACT_NOTHING};

    return tarn_view_write(job->snapshot, &how, writer, error);
}

static enum tarn_status text(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const enum tarn_status status = tarn_report_stats(job->snapshot, TARN_UNITS_IEC, writer, error);

    return status ? status : tarn_report_trace(job->snapshot, NULL, writer, error);
}

static enum tarn_status flame(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct tarn_flame_options how = {.struct_size = sizeof how, .folded = job->form == 1};
    const enum tarn_status status =
        tarn_report_flame(job->snapshot, TARN_FLAME_SEGMENTS, &how, writer, error);

    return status ? status : tarn_report_compare(job->snapshot, job->snapshot, &how, writer, error);
}

static enum tarn_status flame_at(const struct job *job, const struct tarn_writer *writer,
                                 struct tarn_error *error)
{
    const struct tarn_report_options how = {.struct_size = sizeof how,
                                            .by = job->form == 1 ? TARN_BY_SIZE : TARN_BY_STACK};

    return tarn_report_flame_at(job->snapshot, &how, NULL, writer, error);
}

static enum tarn_status diff(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    return tarn_report_diff(job->snapshot, job->snapshot, NULL, NULL, writer, NULL, error);
}

static enum tarn_status trim(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct tarn_trim_options how = {.struct_size = sizeof how,
                                          .drop_cpp = job->form == 1,
                                          .anonymize = job->form == 1,
                                          .drop_freed = job->form == 2};
    struct tarn_snapshot *trimmed = NULL;
    enum tarn_status status = tarn_snapshot_trim(job->snapshot, &how, &trimmed, error);

    if (status == TARN_OK) {
        status = tarn_snapshot_write(trimmed, TARN_SNAPSHOT_PICKLE, writer, error);
        tarn_snapshot_destroy(trimmed);
    }
    return status;
}

static enum tarn_status check(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    struct tarn_findings findings = TARN_FINDINGS_INIT;

    (void)writer;
    return tarn_snapshot_check(job->snapshot, &findings, error);
}

static enum tarn_status replay(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error)
{
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_replay *made = NULL;
    struct tarn_snapshot *after = NULL;
    enum tarn_status status = tarn_replay_create(job->snapshot, -1, &made, error);

    if (status) {
        return status;
    }
    status = tarn_replay_capture(made, job->snapshot, NULL, &result, &after, error);
    tarn_replay_destroy(made);
    if (status == TARN_OK) {
        status = tarn_snapshot_write(after, TARN_SNAPSHOT_JSON, writer, error);
        tarn_snapshot_destroy(after);
    }
    return status;
}

/* As a pickle and read again it is the same JSON. */
static void expect_it_comes_back(const struct job *job)
{
    struct job again = *job;
    struct test_collect texts[2] = {{.text = NULL}};
    struct tarn_snapshot *read = NULL;
    struct tarn_error error = {.text = ""};

    again.run = export;
    again.form = TARN_EXPORT_PICKLE;
    struct outcome pickle = job_run(&again);

    assert_int_equal(pickle.status, TARN_OK);
    if (tarn_snapshot_load_memory(pickle.text.text, pickle.text.size, NULL, &read, &error)) {
        fail_msg("%s: what was written cannot be read: %s", job->path, error.text);
    }
    const struct tarn_snapshot *both[2] = {job->snapshot, read};

    for (int i = 0; i < 2; i++) {
        const struct tarn_writer writer = {test_collect_write, &texts[i]};

        assert_int_equal(tarn_snapshot_write(both[i], TARN_SNAPSHOT_JSON, &writer, NULL), TARN_OK);
    }
    if (texts[0].size != texts[1].size || strcmp(texts[0].text, texts[1].text) != 0) {
        fail_msg("%s: it reads as another one", job->path);
    }
    free(texts[0].text);
    free(texts[1].text);
    free(pickle.text.text);
    tarn_snapshot_destroy(read);
}

static void snapshot_used(const char *path, const struct tarn_snapshot *snapshot)
{
    static const struct job jobs[] = {
        {.run = report, .report = tarn_report_info},
        {.run = report, .report = tarn_report_info, .form = 1},
        {.run = report, .report = tarn_report_peak},
        {.run = report, .report = tarn_report_peak, .form = 1},
        {.run = report, .report = tarn_report_peak, .form = 2},
        {.run = report, .report = tarn_report_top},
        {.run = report, .report = tarn_report_top, .form = 3},
        {.run = report, .report = tarn_report_top, .form = 4},
        {.run = report, .report = tarn_report_top, .form = 5},
        {.run = report, .report = tarn_report_top, .form = 6},
        {.run = report, .report = tarn_report_top, .form = 7},
        {.run = report, .report = tarn_report_live},
        {.run = report, .report = tarn_report_live, .form = 2},
        {.run = report, .report = tarn_report_oom},
        {.run = report, .report = tarn_report_oom, .form = 1},
        {.run = report, .report = tarn_report_churn},
        {.run = report, .report = tarn_report_frag},
        {.run = report, .report = tarn_report_frag, .form = 1},
        {.run = report, .report = tarn_report_leaks},
        {.run = report, .report = tarn_report_steps},
        {.run = export, .form = TARN_EXPORT_JSONL},
        {.run = export, .form = TARN_EXPORT_SQLITE},
        {.run = export, .form = TARN_EXPORT_PERFETTO},
        {.run = export, .form = TARN_EXPORT_SPEEDSCOPE},
        {.run = export, .form = TARN_EXPORT_FOLDED},
        {.run = view},
        {.run = view, .form = 1},
        {.run = text},
        {.run = flame},
        {.run = flame, .form = 1},
        {.run = flame_at},
        {.run = flame_at, .form = 1},
        {.run = diff},
        {.run = trim},
        {.run = trim, .form = 1},
        {.run = trim, .form = 2},
        {.run = check},
        {.run = replay},
    };
    struct job job = {.path = path, .snapshot = snapshot};

    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
        job = jobs[i];
        job.path = path;
        job.snapshot = snapshot;
        const struct outcome outcome = job_fails(&job);

        free(outcome.text.text);
    }
    expect_it_comes_back(&job);
}

/* ---- folders ---- */

static void file_used(const char *path, const struct job *how)
{
    struct job job = *how;

    job.path = path;
    const struct outcome outcome = job_fails(&job);

    free(outcome.text.text);
    if (how->run == load) {
        struct tarn_snapshot *loaded = NULL;

        (void)!snapshot_load(path, how->form == 1, &loaded, NULL);
        if (loaded) {
            snapshot_used(path, loaded);
        }
        tarn_snapshot_destroy(loaded);
    }
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void folder_used(const char *folder, const struct job *how)
{
    char path[1024];
    struct dirent **names = NULL;

    (void)snprintf(path, sizeof path, "%s/%s", TEST_SOURCE_DIR, folder);
    const int count = scandir(path, &names, NULL, by_name);

    assert_true(count > 2);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.') {
            (void)snprintf(path, sizeof path, "%s/%s/%s", TEST_SOURCE_DIR, folder,
                           names[i]->d_name);
            file_used(path, how);
        }
        free(names[i]);
    }
    free(names);
}

static void every_file(void **state)
{
    static const struct {
        const char *folder;
        struct job how;
    } folders[] = {
        {"fuzz/corpus/pickle", {.run = load}},
        {"fuzz/corpus/json", {.run = load}},
        {"fuzz/corpus/rmm", {.run = load}},
        {"fuzz/corpus/profile", {.run = load, .form = 1}},
        {"tests/data/hostile/odd", {.run = load}},
        {"tests/data/hostile/numbers", {.run = load}},
        {"tests/data/hostile/unsafe", {.run = load}},
        {"tests/data/hostile/replay", {.run = load}},
        {"fuzz/corpus/decisions", {.run = verify}},
        {"fuzz/corpus/decisions", {.run = verify_snapshot}},
        {"fuzz/corpus/track", {.run = track}},
        {"fuzz/corpus/summary", {.run = summary}},
        {"fuzz/corpus/summary", {.run = summary, .form = 1}},
        {"fuzz/corpus/rules", {.run = rules}},
        {"fuzz/corpus/rules", {.run = rules, .form = 1}},
        {"fuzz/corpus/where", {.run = where}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        folder_used(folders[i].folder, &folders[i].how);
    }
    assert_true(done.jobs > 500 && done.refused > 50 && done.failures > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_file)};
    const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = place_alloc, .release = place_release};

    if (tarn_host_set_hooks(&hooks) != TARN_OK) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
