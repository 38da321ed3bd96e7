/* SPDX-License-Identifier: MIT */
/*
 * What reads, computes and writes, through the public headers, while the outside fails: each job
 * runs with its first host allocation failing, then with its second, and so on (of many, with those
 * that no job before made from the same place, and some of the others); with SQLite having no
 * memory from its n-th allocation on; with its n-th write refused; and, where it uses files, with
 * its n-th call of the system failing, interrupted or doing only a part. Each time
 *
 *   - the job reports that failure, or has coped with it, and then writes what it writes without;
 *   - nothing leaks, of host memory or of descriptors;
 *   - of a file that is written there is the old one, whole, or the new one, whole, and no draft.
 */
#define _GNU_SOURCE    /* syscall */
#undef _FORTIFY_SOURCE /* whose `read` is inline, where this file has its own */
#include "support/alloc_places.h"
#include "support/collect.h"
#include "support/file.h"
#include "support/share.h"
#include "support/sim.h"
#include "support/temp.h"
#include "support/test.h"

#include "tarn/capture.h"
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

#include <errno.h>
#include <fcntl.h>
#ifdef HAS_SQLITE
#include <sqlite3.h>
#endif
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    RANKS = 4,
    PATH_BYTES = 512,
    FAULTS_MAX = 300 /* of one kind in one job: beyond that only every second call fails, or third,
                        and so on */
};

/* ---- calls of the system ---- */

enum fault {
    FAULT_NONE,
    FAULT_ERROR,       /* EIO */
    FAULT_INTERRUPTED, /* EINTR, of what can be called again */
    FAULT_PART         /* one byte */
};

static struct {
    enum fault fault; /* of call number `at` */
    uint64_t at;      /* from 1 */
    uint64_t calls;
    int open; /* descriptors */
    bool is_on;
} outside;

/* What happens to this call. */
static enum fault outside_call(void)
{
    if (!outside.is_on || ++outside.calls != outside.at) {
        return FAULT_NONE;
    }
    errno = outside.fault == FAULT_INTERRUPTED ? EINTR : EIO;
    return outside.fault;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode = 0;

    if (flags & (O_CREAT | O_TMPFILE)) {
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    if (outside_call() == FAULT_ERROR) {
        return -1;
    }
    const int file = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);

    outside.open += outside.is_on && file >= 0;
    return file;
}

int close(int file)
{
    const bool fails = outside_call() == FAULT_ERROR;
    const int status = (int)syscall(SYS_close, file);

    outside.open -= outside.is_on && status == 0;
    if (fails) { /* it is closed all the same */
        errno = EIO;
    }
    return fails ? -1 : status;
}

/* Here of copies of descriptors only. */
int fcntl(int file, int command, ...)
{
    va_list arguments;

    va_start(arguments, command);
    const long argument = va_arg(arguments, long);

    va_end(arguments);
    const bool fails = command == F_DUPFD_CLOEXEC && outside_call() == FAULT_ERROR;
    const int result = fails ? -1 : (int)syscall(SYS_fcntl, file, command, argument);

    outside.open += outside.is_on && command == F_DUPFD_CLOEXEC && result >= 0;
    return result;
}

ssize_t read(int file, void *bytes, size_t size)
{
    const enum fault fault = outside_call();

    if (fault == FAULT_ERROR || fault == FAULT_INTERRUPTED) {
        return -1;
    }
    return syscall(SYS_read, file, bytes, fault == FAULT_PART && size > 1 ? 1 : size);
}

ssize_t write(int file, const void *bytes, size_t size)
{
    const enum fault fault = outside_call();

    if (fault == FAULT_ERROR || fault == FAULT_INTERRUPTED) {
        return -1;
    }
    return syscall(SYS_write, file, bytes, fault == FAULT_PART && size > 1 ? 1 : size);
}

int fsync(int file)
{
    return outside_call() == FAULT_ERROR ? -1 : (int)syscall(SYS_fsync, file);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    return outside_call() == FAULT_ERROR
               ? -1
               : (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
}

int rename(const char *from, const char *to)
{
    return outside_call() == FAULT_ERROR
               ? -1
               : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* ---- SQLite's memory ---- */

#ifdef HAS_SQLITE
static struct {
    struct sqlite3_mem_methods real;
    uint64_t calls;
    uint64_t at; /* from here on all fail; 0 = none */
} sqlite;

static bool sqlite_fails_now(void)
{
    return ++sqlite.calls >= sqlite.at && sqlite.at > 0;
}

static void *sqlite_alloc(int size)
{
    return sqlite_fails_now() ? NULL : sqlite.real.xMalloc(size);
}

static void *sqlite_realloc(void *memory, int size)
{
    return sqlite_fails_now() ? NULL : sqlite.real.xRealloc(memory, size);
}

static bool sqlite_init(void)
{
    if (sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite.real) != SQLITE_OK) {
        return false;
    }
    struct sqlite3_mem_methods failing = sqlite.real;

    failing.xMalloc = sqlite_alloc;
    failing.xRealloc = sqlite_realloc;
    return sqlite3_config(SQLITE_CONFIG_MALLOC, &failing) == SQLITE_OK &&
           sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0) == SQLITE_OK;
}
#endif

/* ---- jobs ---- */

typedef enum tarn_status report_function(const struct tarn_snapshot *snapshot,
                                         const struct tarn_report_options *options,
                                         const struct tarn_writer *writer,
                                         struct tarn_error *error);

/* What jobs work on, made before the first failure. */
static struct {
    struct tarn_snapshot *small;      /* a few events */
    struct tarn_snapshot *graph;      /* private pools, annotations */
    struct tarn_snapshot *oom;        /* a step, and a request that failed */
    struct tarn_snapshot *steps;      /* three steps of a training run on several streams */
    struct tarn_replay *replay;       /* of `graph` */
    struct test_collect summaries[2]; /* of ranks by stack, and by category */
    char folder[PATH_BYTES];
} given;

/* What is captured. */
static struct {
    struct tarn_device *device;
    struct tarn_allocator *allocator;
    struct tarn_history *history;
    struct tarn_pinned *pinned;
    struct tarn_history *pinned_history;
} running;

enum given_run {
    OF_GRAPH,
    OF_OOM,
    OF_STEPS
};

struct job {
    const char *name;
    enum tarn_status (*run)(const struct job *job, const struct tarn_writer *writer,
                            struct tarn_error *error);
    int form;                             /* means something to `run` */
    enum tarn_export_format table_format; /* of FLEET_TABLE */
    const char *file; /* that the job reads, in the folder of test data, or writes */
    report_function *report;
    bool may_differ;   /* what it does after a failure that it coped with may be another thing */
    enum given_run of; /* of REPORT, EXPORT, PAGE and FLEET_SUMMARY */
    struct tarn_report_options options;
};

static const struct tarn_snapshot *given_of(const struct job *job)
{
    const struct tarn_snapshot *const all[] = {
        [OF_GRAPH] = given.graph, [OF_OOM] = given.oom, [OF_STEPS] = given.steps};

    return all[job->of];
}

static const char *data_path(const struct job *job)
{
    static char path[PATH_BYTES * 2];

    (void)snprintf(path, sizeof path, "%s/%s", TEST_DATA_DIR, job->file);
    return path;
}

static enum tarn_status report(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error)
{
    return job->report(given_of(job), &job->options, writer, error);
}

static enum tarn_status diff(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct tarn_diff_options how = {
        .struct_size = sizeof how, .folded = job->form == 1, .ignore_lines = job->form == 2};

    return tarn_report_diff(given.small, given.graph, &job->options, &how, writer, NULL, error);
}

static enum tarn_status flame_at(const struct job *job, const struct tarn_writer *writer,
                                 struct tarn_error *error)
{
    const struct tarn_flame_at_options how = {
        .struct_size = sizeof how,
        .folded = job->form == 1,
        .is_inverted = job->form == 2,
        .from = {.kind = job->form == 3 ? TARN_AT_START : TARN_AT_UNSPECIFIED}};

    return tarn_report_flame_at(given_of(job), &job->options, &how, writer, error);
}

static enum tarn_status trace(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    (void)job;
    return tarn_report_trace(given.graph, NULL, writer, error);
}

static enum tarn_status stats(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    (void)job;
    return tarn_report_stats(given.graph, TARN_UNITS_IEC, writer, error);
}

static enum tarn_status compare(const struct job *job, const struct tarn_writer *writer,
                                struct tarn_error *error)
{
    const struct tarn_flame_options how = {.struct_size = sizeof how, .folded = job->form == 1};

    return job->form == 2
               ? tarn_report_compare_lists(given.small, given.graph, &how, writer, NULL, error)
               : tarn_report_compare(given.small, given.graph, &how, writer, error);
}

static enum tarn_status check(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    struct tarn_findings findings = {.count = 0};
    const enum tarn_status status = tarn_snapshot_check(given.graph, &findings, error);

    (void)job;
    (void)writer;
    assert_int_equal(findings.count, 0);
    return status;
}

static enum tarn_status export(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error) {
    return tarn_export(given_of(job), (enum tarn_export_format)job->form, NULL, writer, error);
}

static enum tarn_status trim(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct tarn_trim_options how = {.struct_size = sizeof how,
                                          .has_events = true,
                                          .first_event = 10,
                                          .last_event = 200,
                                          .drop_cpp = job->form == 1,
                                          .anonymize = job->form == 1,
                                          .drop_freed = job->form == 2};
    struct tarn_snapshot *trimmed;
    enum tarn_status status = tarn_snapshot_trim(given.graph, &how, &trimmed, error);

    if (status) {
        assert_null(trimmed);
        return status;
    }
    status = tarn_snapshot_write(trimmed, TARN_SNAPSHOT_PICKLE, writer, error);
    tarn_snapshot_destroy(trimmed);
    return status;
}

/* ---- fleets ---- */

static enum tarn_status fleet_fill(struct tarn_fleet *fleet, const struct job *job,
                                   struct tarn_error *error)
{
    const struct tarn_summary_options how = {.struct_size = sizeof how, .report = &job->options};
    enum tarn_status status = TARN_OK;

    for (int i = 0; status == TARN_OK && i < RANKS; i++) {
        char name[48];

        /* With numbers that are missing. */
        (void)snprintf(name, sizeof name, "host%d/zone=b,rank%d", i / 2, i < 3 ? i : 5);
        status = tarn_fleet_add(fleet, i == 2 ? given_of(job) : given.small, name, &how, error);
    }
    return status;
}

enum fleet_form {
    FLEET_SUMMARY,
    FLEET_REPORT,
    FLEET_EXTREMES,
    FLEET_PAGE,
    FLEET_TABLE
};

static enum tarn_status fleet_write(struct tarn_fleet *fleet, const struct job *job,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    struct tarn_fleet_extreme extremes[TARN_FLEET_EXTREMES];
    const struct tarn_fleet_options how = {
        .struct_size = sizeof how, .since_step = 1, .device_total = (uint64_t)1 << 30};
    size_t count;

    switch ((enum fleet_form)job->form) {
    case FLEET_SUMMARY:
        return tarn_fleet_write(fleet, writer, error);
    case FLEET_REPORT:
        return tarn_fleet_report(fleet, &job->options, &how, writer, error);
    case FLEET_EXTREMES:
        return tarn_fleet_find_extremes(fleet, extremes, TARN_FLEET_EXTREMES, &count, error);
    case FLEET_PAGE:
        return tarn_view_write_ranks(fleet, &how, NULL, writer, error);
    case FLEET_TABLE:
        break;
    }
    return tarn_export_fleet(fleet, (enum tarn_export_format)job->table_format, NULL, writer,
                             error);
}

/* Ranks from snapshots for a summary, else from a summary: that has fewer calls. */
static enum tarn_status fleet(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct test_collect *summary = &given.summaries[job->options.by == TARN_BY_CATEGORY];
    struct tarn_fleet *made;
    enum tarn_status status = tarn_fleet_create(&made, error);

    if (status) {
        return status;
    }
    status = job->form == FLEET_SUMMARY
                 ? fleet_fill(made, job, error)
                 : tarn_fleet_load_memory(made, summary->text, summary->size, NULL, error);
    if (status == TARN_OK) {
        status = fleet_write(made, job, writer, error);
    }
    tarn_fleet_destroy(made);
    return status;
}

/* ---- pages ---- */

static enum tarn_status page(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct tarn_view_options how = {.struct_size = sizeof how,
                                          .redact = job->form == 2 ? TARN_VIEW_REDACT_ALL
                                                                   : TARN_VIEW_REDACT_NOTHING};
    const struct tarn_view_run runs[] = {
        {.struct_size = sizeof runs[0], .snapshot = given.small},
        {.struct_size = sizeof runs[0], .snapshot = given.graph},
    };

    return job->form == 1 ? tarn_view_write_runs(runs, 2, &how, writer, error)
                          : tarn_view_write(job->of == OF_GRAPH ? given.small : given_of(job), &how,
                                            writer, error);
}

/* ---- replays ---- */

static enum tarn_status replay(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error)
{
    const struct tarn_replay_options how = {.struct_size = sizeof how,
                                            .conf = job->form == 0   ? NULL
                                                    : job->form == 1 ? "expandable_segments:True"
                                                                     : "policy:compact"};
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_replay *made;
    struct tarn_snapshot *after;
    enum tarn_status status = tarn_replay_create(given.graph, -1, &made, error);

    if (status) {
        return status;
    }
    status = tarn_replay_capture(made, given.graph, &how, &result, &after, error);
    tarn_replay_destroy(made);
    if (status == TARN_OK) {
        assert_true(result.operations > 0);
        status = tarn_snapshot_write(after, TARN_SNAPSHOT_PICKLE, writer, error);
        if (job->may_differ && status == TARN_OK) {
            struct tarn_findings findings = TARN_FINDINGS_INIT;

            status = tarn_snapshot_check(after, &findings, error);
            assert_int_equal(findings.count, 0);
        }
        tarn_snapshot_destroy(after);
    }
    return status;
}

static enum tarn_status tune(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    const struct tarn_tune_options how = {.struct_size = sizeof how,
                                          .threads = 1,
                                          .tries = 4,
                                          .each = job->form == 1,
                                          .recommends = true};
    const struct tarn_replay *replays[] = {given.replay};
    struct tarn_tune_row rows[4];
    size_t count = 0;
    const enum tarn_status status = tarn_replay_tune(replays, 1, &how, rows, 4, &count, error);

    if (status) {
        return status;
    }
    return writer->write(writer->context, rows[count - 1].conf, strlen(rows[count - 1].conf) + 1);
}

static enum tarn_status fit(const struct job *job, const struct tarn_writer *writer,
                            struct tarn_error *error)
{
    uint64_t capacity;
    const enum tarn_status status = tarn_replay_fit(given.replay, NULL, &capacity, error);
    char text[32];

    (void)job;
    if (status) {
        return status;
    }
    return writer->write(writer->context, text,
                         (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)capacity));
}

static enum tarn_status scale(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    const struct tarn_scale_rule rule = {.what = TARN_SCALE_MATCH, .pattern = "py", .factor = 2};
    struct tarn_scale_info info = {.struct_size = sizeof info};
    struct tarn_replay *scaled;
    char text[32];
    const enum tarn_status status =
        tarn_replay_scale(given.replay, given.graph, &rule, 1, &scaled, &info, error);

    (void)job;
    if (status) {
        return status;
    }
    tarn_replay_destroy(scaled);
    return writer->write(
        writer->context, text,
        (size_t)snprintf(text, sizeof text, "%llu", (unsigned long long)info.bytes_selected));
}

static enum tarn_status scale_largest(const struct job *job, const struct tarn_writer *writer,
                                      struct tarn_error *error)
{
    const struct tarn_scale_rule rule = {.what = TARN_SCALE_MATCH, .pattern = "py", .factor = 1};
    const struct tarn_replay_options how = {.struct_size = sizeof how,
                                            .memory_limit = (uint64_t)1 << 30};
    double factor = 0;
    char text[32];
    const enum tarn_status status =
        tarn_replay_scale_largest(given.replay, given.graph, &rule, 1, &how, &factor, error);

    (void)job;
    if (status) {
        return status;
    }
    return writer->write(writer->context, text,
                         (size_t)snprintf(text, sizeof text, "%.3f", factor));
}

/* ---- live allocators ---- */

static enum tarn_status capture(const struct job *job, const struct tarn_writer *writer,
                                struct tarn_error *error)
{
    const struct tarn_capture_source source = {running.allocator, running.history};
    const struct tarn_capture_options how = {.struct_size = sizeof how,
                                             .pinned = running.pinned,
                                             .pinned_history = running.pinned_history};
    struct tarn_snapshot *captured = NULL;
    char text[64];
    const enum tarn_status status = tarn_snapshot_capture(&source, 1, &how, &captured, error);

    (void)job;
    assert_true((captured == NULL) == (status != TARN_OK));
    if (status) {
        return status;
    }
    const int length = snprintf(text, sizeof text, "%zu segments, %llu events",
                                tarn_snapshot_segment_count(captured),
                                (unsigned long long)tarn_snapshot_entry_count(captured));

    tarn_snapshot_destroy(captured);
    return writer->write(writer->context, text, (size_t)length);
}

static struct tarn_history *history_make(struct tarn_sink *sink)
{
    const struct tarn_history_options how = {.struct_size = sizeof how, .max_entries = 4};
    struct tarn_history *history = NULL;

    assert_int_equal(tarn_history_create(&how, &history, NULL), TARN_OK);
    tarn_history_get_sink(history, TARN_CONTEXT_ALL, sink);
    return history;
}

/* Histories are full, so that a capture is as the one before. */
static void running_open(void)
{
    const struct tarn_annotation_field field = {"key", "value"};
    struct tarn_sink sink;
    struct tarn_config config;
    tarn_ptr ptr;
    void *memory;

    running.device = sim_open(GIB);
    assert_int_equal(tarn_config_parse("policy:compact", &config, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_create(running.device, &config, &running.allocator, NULL),
                     TARN_OK);
    running.history = history_make(&sink);
    assert_int_equal(tarn_allocator_add_sink(running.allocator, &sink, NULL), TARN_OK);
    assert_int_equal(tarn_pinned_create(running.device, NULL, &running.pinned, NULL), TARN_OK);
    running.pinned_history = history_make(&sink);
    tarn_pinned_set_sink(running.pinned, &sink);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tarn_allocator_alloc(running.allocator, 3 * MIB, 0, &ptr, NULL), TARN_OK);
        assert_int_equal(tarn_pinned_alloc(running.pinned, MIB, &memory, NULL), TARN_OK);
    }
    assert_int_equal(
        tarn_history_annotate(running.history, TARN_ANNOTATION_START, 0, "phase", &field, 1),
        TARN_OK);
}

static void running_close(void)
{
    tarn_pinned_destroy(running.pinned);
    tarn_allocator_destroy(running.allocator);
    tarn_history_destroy(running.pinned_history);
    tarn_history_destroy(running.history);
    sim_close(running.device);
}

/* ---- files that are read ---- */

static enum tarn_status load(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    struct tarn_snapshot *loaded;
    enum tarn_status status = job->form == 1
                                  ? tarn_profile_load(data_path(job), NULL, &loaded, NULL, error)
                                  : tarn_snapshot_load(data_path(job), NULL, &loaded, error);

    if (status) {
        assert_null(loaded);
        return status;
    }
    status = tarn_snapshot_write(loaded, TARN_SNAPSHOT_JSON, writer, error);
    tarn_snapshot_destroy(loaded);
    return status;
}

static enum tarn_status verify(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error)
{
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_snapshot *made;
    enum tarn_status status;

    if (job->form == 0) {
        status = tarn_verify_log(data_path(job), NULL, &result, error);
        assert_int_equal(result.differing, 0);
        return status;
    }
    status = tarn_verify_snapshot(data_path(job), &made, error);
    if (status == TARN_OK) {
        status = tarn_snapshot_write(made, TARN_SNAPSHOT_JSON, writer, error);
        tarn_snapshot_destroy(made);
    }
    return status;
}

static enum tarn_status track_write(struct tarn_tracker *tracker, const struct tarn_writer *writer,
                                    struct tarn_error *error)
{
    enum tarn_status status = tarn_tracker_write_json(tracker, true, writer, error);

    if (status == TARN_OK) {
        status = tarn_tracker_write_rows(tracker, TARN_TRACK_PEAKS, TARN_UNITS_MIB,
                                         TARN_TRACK_TABLE, writer, error);
    }
    if (status == TARN_OK) {
        status =
            tarn_tracker_write_modules(tracker, 3, TARN_UNITS_MIB, TARN_TRACK_TABLE, writer, error);
    }
    if (status == TARN_OK) {
        status = tarn_tracker_write_tree(tracker, TARN_TRACK_PEAKS, 3, TARN_UNITS_MIB, 10, writer,
                                         error);
    }
    return status ? status : tarn_tracker_write_iterations(tracker, TARN_UNITS_MIB, writer, error);
}

static enum tarn_status track(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    struct tarn_track_replay result = {.struct_size = sizeof result};
    struct tarn_findings findings = {.count = 0};
    struct tarn_tracker *tracker;
    enum tarn_status status = tarn_tracker_create(NULL, &tracker, error);

    if (status) {
        return status;
    }
    status = tarn_tracker_replay_log(tracker, data_path(job), NULL, &result, error);
    assert_int_equal(tarn_tracker_check(tracker, &findings), 0);
    if (status == TARN_OK) {
        assert_int_equal(result.differing, 0);
        status = track_write(tracker, writer, error);
    }
    tarn_tracker_destroy(tracker);
    return status;
}

static const char *folder_path(const char *name)
{
    static char path[PATH_BYTES * 2];

    (void)snprintf(path, sizeof path, "%s/%s", given.folder, name);
    return path;
}

static enum tarn_status rules(const struct job *job, const struct tarn_writer *writer,
                              struct tarn_error *error)
{
    struct tarn_rules *loaded;
    struct tarn_suppressions *suppressions;
    struct tarn_where *where;
    enum tarn_status status;

    (void)writer;
    switch (job->form) {
    case 0:
        status = tarn_rules_load(folder_path("rules"), &loaded, error);
        tarn_rules_destroy(status ? NULL : loaded);
        return status;
    case 1:
        status = tarn_suppressions_load(folder_path("suppressions"), &suppressions, error);
        tarn_suppressions_destroy(status ? NULL : suppressions);
        return status;
    default:
        status = tarn_where_parse("size >= 1MiB && (frame ~ \"a|b\" || lifetime > 2s)"
                                  " && !(stream == 0)",
                                  &where, error);
        tarn_where_destroy(status ? NULL : where);
        return status;
    }
}

static enum tarn_status labels(const struct job *job, const struct tarn_writer *writer,
                               struct tarn_error *error)
{
    struct tarn_fleet *made;
    enum tarn_status status = tarn_fleet_create(&made, error);

    (void)job;
    if (status) {
        return status;
    }
    status = tarn_fleet_load(made, folder_path("ranks.tsum"), NULL, error);
    assert_int_equal(tarn_fleet_rank_count(made), status ? 0 : RANKS);
    if (status == TARN_OK) {
        status = tarn_fleet_load_labels(made, folder_path("labels.csv"), error);
    }
    if (status == TARN_OK) {
        status = tarn_fleet_report(made, &job->options, NULL, writer, error);
    }
    tarn_fleet_destroy(made);
    return status;
}

/* ---- files that are written ---- */

static enum tarn_status save(const struct job *job, const struct tarn_writer *writer,
                             struct tarn_error *error)
{
    (void)writer;
    return tarn_snapshot_save(given.small, folder_path(job->file), error);
}

#define REPORT(call, how)                                                                          \
    {                                                                                              \
        .name = #call " of " #how, .run = report, .report = (call), .options = { how }             \
    }
#define REPORT_OF(run_, call, how)                                                                 \
    {                                                                                              \
        .name = #call " of " #run_ ", " #how, .run = report, .of = (run_), .report = (call),       \
        .options = {                                                                               \
            how                                                                                    \
        }                                                                                          \
    }
#define FORMS(call)                                                                                \
    REPORT(call, .format = TARN_REPORT_TEXT), REPORT(call, .format = TARN_REPORT_JSON),            \
        REPORT(call, .format = TARN_REPORT_JSONL), REPORT(call, .format = TARN_REPORT_CSV),        \
        REPORT(call, .by = TARN_BY_CATEGORY)

/* Stacks without some of their frames are made anew. */
static const struct tarn_selection shown = {.struct_size = sizeof shown, .hide = "forward"};

/* Some of the blocks, and of the events. */
static const struct tarn_selection some_of_it = {
    .struct_size = sizeof some_of_it, .pools = TARN_POOLS_DEFAULT, .events = {true, 10, 1020}};

static size_t no_remedy(void *context, int device, uint64_t *memory,
                        struct tarn_oom_remedy *remedies, size_t count)
{
    (void)context;
    (void)device;
    (void)memory;
    (void)remedies;
    (void)count;
    return 0;
}

static const struct job jobs[] = {
    FORMS(tarn_report_peak),
    REPORT(tarn_report_peak, .tree = true),
    FORMS(tarn_report_top),
    REPORT(tarn_report_top, .tree = true),
    FORMS(tarn_report_live),
    FORMS(tarn_report_oom),
    FORMS(tarn_report_churn),
    FORMS(tarn_report_frag),
    FORMS(tarn_report_leaks),
    FORMS(tarn_report_steps),
    FORMS(tarn_report_info),
    {.name = "diff", .run = diff},
    {.name = "diff, folded", .run = diff, .form = 1},
    {.name = "diff, JSON", .run = diff, .form = 2, .options = {.format = TARN_REPORT_JSON}},
    {.name = "flame graph", .run = flame_at},
    {.name = "flame graph, folded", .run = flame_at, .form = 1},
    {.name = "flame graph, inverted", .run = flame_at, .form = 2},
    {.name = "flame graph of growth", .run = flame_at, .form = 3},
    {.name = "trace", .run = trace},
    {.name = "stats", .run = stats},
    {.name = "compare", .run = compare},
    {.name = "compare, folded", .run = compare, .form = 1},
    {.name = "compare, lists", .run = compare, .form = 2},
    {.name = "check", .run = check},
    {.name = "export JSON", .run = export, .form = TARN_EXPORT_JSON},
    {.name = "export JSONL", .run = export, .form = TARN_EXPORT_JSONL},
    {.name = "export CSV", .run = export, .form = TARN_EXPORT_CSV},
    {.name = "export SQLite", .run = export, .form = TARN_EXPORT_SQLITE},
    {.name = "export Perfetto", .run = export, .form = TARN_EXPORT_PERFETTO},
    {.name = "export speedscope", .run = export, .form = TARN_EXPORT_SPEEDSCOPE},
    {.name = "export pickle", .run = export, .form = TARN_EXPORT_PICKLE},
    {.name = "trim", .run = trim},
    {.name = "trim, anonymous", .run = trim, .form = 1},
    {.name = "trim, without what is freed", .run = trim, .form = 2},
    {.name = "summary", .run = fleet, .form = FLEET_SUMMARY},
    {.name = "ranks", .run = fleet, .form = FLEET_REPORT},
    {.name = "ranks by category",
     .run = fleet,
     .form = FLEET_REPORT,
     .options = {.by = TARN_BY_CATEGORY, .format = TARN_REPORT_JSON}},
    {.name = "extremes", .run = fleet, .form = FLEET_EXTREMES},
    {.name = "page of ranks", .run = fleet, .form = FLEET_PAGE},
    {.name = "ranks as CSV", .run = fleet, .form = FLEET_TABLE, .table_format = TARN_EXPORT_CSV},
    {.name = "ranks as JSONL",
     .run = fleet,
     .form = FLEET_TABLE,
     .table_format = TARN_EXPORT_JSONL},
    {.name = "ranks as SQLite",
     .run = fleet,
     .form = FLEET_TABLE,
     .table_format = TARN_EXPORT_SQLITE},
    {.name = "page", .run = page},
    {.name = "page of two", .run = page, .form = 1},
    {.name = "page, redacted", .run = page, .form = 2},
    {.name = "replay", .run = replay},
    {.name = "replay, expandable", .run = replay, .form = 1},
    /* A free block that no list has room for is passed over when pages are looked for: the run
     * goes on, with other pages. */
    {.name = "replay, compact", .run = replay, .form = 2, .may_differ = true},
    {.name = "tune", .run = tune},
    {.name = "tune each", .run = tune, .form = 1},
    {.name = "fit", .run = fit},
    {.name = "scale", .run = scale},
    {.name = "scale, as far as it fits", .run = scale_largest},
    {.name = "capture", .run = capture},
    {.name = "where", .run = rules, .form = 2},
    REPORT_OF(OF_OOM, tarn_report_oom, .format = TARN_REPORT_TEXT),
    REPORT_OF(OF_OOM, tarn_report_oom, .format = TARN_REPORT_JSON),
    REPORT_OF(OF_OOM, tarn_report_oom, .by = TARN_BY_CATEGORY),
    REPORT_OF(OF_OOM, tarn_report_frag, .format = TARN_REPORT_TEXT),
    REPORT_OF(OF_OOM, tarn_report_info, .format = TARN_REPORT_TEXT),
    REPORT_OF(OF_STEPS, tarn_report_steps, .format = TARN_REPORT_TEXT),
    REPORT_OF(OF_STEPS, tarn_report_leaks, .format = TARN_REPORT_JSON),
    REPORT_OF(OF_STEPS, tarn_report_peak, .by = TARN_BY_CATEGORY),
    REPORT_OF(OF_STEPS, tarn_report_churn, .format = TARN_REPORT_TEXT),
    REPORT_OF(OF_STEPS, tarn_report_top, .selection = &shown),
    REPORT_OF(OF_STEPS, tarn_report_leaks, .selection = &shown),
    REPORT_OF(OF_STEPS, tarn_report_churn, .selection = &shown),
    REPORT_OF(OF_STEPS, tarn_report_frag, .selection = &shown),
    REPORT_OF(OF_OOM, tarn_report_oom, .selection = &shown),
    REPORT_OF(OF_OOM, tarn_report_oom, .find_remedies = no_remedy),
    REPORT(tarn_report_peak, .by = TARN_BY_POOL),
    REPORT(tarn_report_top, .selection = &some_of_it),
    REPORT_OF(OF_OOM, tarn_report_info, .selection = &some_of_it),
    {.name = "flame graph of steps", .run = flame_at, .of = OF_STEPS},
    {.name = "flame graph, selected", .run = flame_at, .options = {.selection = &shown}},
    {.name = "flame graph of growth, selected",
     .run = flame_at,
     .form = 3,
     .options = {.selection = &shown}},
    {.name = "summary of a failure", .run = fleet, .form = FLEET_SUMMARY, .of = OF_OOM},
    {.name = "page of a failure", .run = page, .of = OF_OOM},
    {.name = "page of steps", .run = page, .of = OF_STEPS},
};

/* These read files. */
static const struct job readers[] = {
    {.name = "load a pickle", .run = load, .file = "snapshots/tiny.pickle.gz"},
    {.name = "load RMM's log", .run = load, .file = "logs/rmm.csv"},
    {.name = "load a profile", .run = load, .form = 1, .file = "profiles/profile.json.gz"},
    {.name = "verify", .run = verify, .file = "logs/same.jsonl"},
    {.name = "verify to snapshot", .run = verify, .form = 1, .file = "logs/same.jsonl"},
    {.name = "track", .run = track, .file = "tracker/conv_cpu.jsonl.gz"},
    {.name = "rules", .run = rules},
    {.name = "suppressions", .run = rules, .form = 1},
    {.name = "summary and labels", .run = labels},
};

/* And these write one. */
static const struct job savers[] = {
    {.name = "save a pickle", .run = save, .file = "out.pickle"},
    {.name = "save gzip", .run = save, .file = "out.pickle.gz"},
    {.name = "save zstd", .run = save, .file = "out.pickle.zst"},
    {.name = "save JSON", .run = save, .file = "out.json"},
};

/* ---- failures ---- */

struct outcome {
    enum tarn_status status;
    struct tarn_error error;
    struct test_collect text;
    uint64_t writes;
};

/* A writer that refuses its n-th piece. */
struct refusing {
    struct test_collect *collect;
    uint64_t writes;
    uint64_t refused; /* from 1; 0 = none */
};

static enum tarn_status refusing_write(void *context, const char *bytes, size_t size)
{
    struct refusing *refusing = context;

    return ++refusing->writes == refusing->refused
               ? TARN_ERR_CANCELLED
               : test_collect_write(refusing->collect, bytes, size);
}

static struct outcome job_run(const struct job *job, uint64_t refused)
{
    struct outcome outcome = {.error = {.status = TARN_OK}};
    struct refusing refusing = {.collect = &outcome.text, .refused = refused};
    const struct tarn_writer writer = {refusing_write, &refusing};
    struct job sized = *job;

    sized.options.struct_size = sizeof sized.options;
    outcome.status = job->run(&sized, &writer, &outcome.error);
    outcome.writes = refusing.writes;
    return outcome;
}

/* As often as there are calls, or every k-th of them, so that there are FAULTS_MAX or fewer. */
static uint64_t stride_of(uint64_t calls)
{
    return 1 + calls / test_part(FAULTS_MAX);
}

static void expect_same(const struct job *job, const struct outcome *right,
                        const struct outcome *outcome, const char *what, uint64_t n)
{
    if (outcome->text.size != right->text.size ||
        (right->text.size > 0 &&
         memcmp(outcome->text.text, right->text.text, right->text.size) != 0)) {
        fail_msg("%s: after %s %llu failed it wrote something else", job->name, what,
                 (unsigned long long)n);
    }
}

/* The job failed with `status`, and says so, or did what it does otherwise. */
static void expect_failed_or_same(const struct job *job, const struct outcome *right,
                                  struct outcome *outcome, enum tarn_status status,
                                  const char *what, uint64_t n)
{
    if (outcome->status == TARN_OK && job->may_differ) {
        assert_true(outcome->text.size > 0);
    } else if (outcome->status == TARN_OK) {
        expect_same(job, right, outcome, what, n);
    } else if (outcome->status != status || outcome->error.status != status ||
               outcome->error.text[0] == '\0') {
        fail_msg("%s, %s %llu: returned %d, error %d: %s", job->name, what, (unsigned long long)n,
                 (int)outcome->status, (int)outcome->error.status, outcome->error.text);
    }
    free(outcome->text.text);
}

/* The next call after number `n` that is to fail. */
static uint64_t next_call(uint64_t n, uint64_t calls)
{
    const uint64_t stride = stride_of(calls);
    uint64_t next = n + stride - (n + stride - 1) % stride;

    for (size_t i = 0; i < places.fresh_count && places.fresh[i] < next; i++) {
        next = places.fresh[i] > n ? places.fresh[i] : next;
    }
    return next;
}

/* Returns how many failures the job reported. */
static uint64_t memory_fails(const struct job *job, const struct outcome *right, uint64_t calls)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    uint64_t failures = 0;

    for (uint64_t n = 1; n <= calls; n = next_call(n, calls)) {
        tarn_host_fail_nth(n);
        struct outcome outcome = job_run(job, 0);

        tarn_host_fail_nth(0);
        failures += outcome.status != TARN_OK;
        expect_failed_or_same(job, right, &outcome, TARN_ERR_HOST_MEMORY, "allocation", n);
        if (tarn_host_get_usage().live_bytes != live) {
            fail_msg("%s, allocation %llu: %lld bytes leak", job->name, (unsigned long long)n,
                     (long long)(tarn_host_get_usage().live_bytes - live));
        }
    }
    return failures;
}

#ifdef HAS_SQLITE
/* From its n-th allocation on SQLite has no memory. */
static void sqlite_fails(const struct job *job, const struct outcome *right)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;

    sqlite.calls = 0;
    free(job_run(job, 0).text.text);
    const uint64_t calls = sqlite.calls;
    uint64_t failures = 0;

    for (uint64_t n = 1; n <= calls; n += stride_of(calls)) {
        const sqlite3_int64 used = sqlite3_memory_used();

        sqlite.calls = 0;
        sqlite.at = n;
        struct outcome outcome = job_run(job, 0);

        sqlite.at = 0;
        failures += outcome.status != TARN_OK;
        expect_failed_or_same(job, right, &outcome, TARN_ERR_HOST_MEMORY, "SQLite's allocation", n);
        assert_int_equal(sqlite3_memory_used(), used);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    assert_true((failures > 0) == (calls > 0));
}
#else
static void sqlite_fails(const struct job *job, const struct outcome *right)
{
    (void)job;
    (void)right;
}
#endif

static void writes_are_refused(const struct job *job, const struct outcome *right)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;

    for (uint64_t n = 1; n <= right->writes; n += stride_of(right->writes)) {
        struct outcome outcome = job_run(job, n);

        if (outcome.status != TARN_ERR_CANCELLED || outcome.writes != n) {
            fail_msg("%s, write %llu of %llu: returned %d", job->name, (unsigned long long)n,
                     (unsigned long long)outcome.writes, (int)outcome.status);
        }
        free(outcome.text.text);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
}

/* The whole of `name` in the folder; free with free(). */
static struct test_collect folder_read(const char *name)
{
    struct test_collect file = {.text = NULL};
    char piece[4096];
    size_t got;
    FILE *in = fopen(folder_path(name), "rb");

    assert_non_null(in);
    while ((got = fread(piece, 1, sizeof piece, in)) > 0) {
        assert_int_equal(test_collect_write(&file, piece, got), TARN_OK);
    }
    (void)fclose(in);
    return file;
}

static struct outcome job_run_outside(const struct job *job, enum fault fault, uint64_t at)
{
    outside.fault = fault;
    outside.at = at;
    outside.calls = 0;
    outside.open = 0;
    outside.is_on = true;
    struct outcome outcome = job_run(job, 0);

    outside.is_on = false;
    if (outside.open != 0) {
        fail_msg("%s, call %llu: %d descriptors leak", job->name, (unsigned long long)at,
                 outside.open);
    }
    return outcome;
}

/* Only what has failed for good may be noticed. */
static uint64_t system_fails(const struct job *job, const struct outcome *right)
{
    const uint64_t live = tarn_host_get_usage().live_bytes;
    uint64_t failures = 0;

    for (enum fault fault = FAULT_ERROR; fault <= FAULT_PART; fault++) {
        uint64_t n = 0;

        do {
            struct outcome outcome = job_run_outside(job, fault, ++n);

            failures += outcome.status != TARN_OK;
            expect_failed_or_same(job, right, &outcome,
                                  fault == FAULT_ERROR ? TARN_ERR_IO : TARN_OK, "system call", n);
            assert_int_equal(tarn_host_get_usage().live_bytes, live);
        } while (outside.calls >= n);
    }
    return failures;
}

/* ---- tests ---- */

static void file_write(const char *name, const char *bytes, size_t size)
{
    FILE *out = fopen(folder_path(name), "wb");

    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    assert_int_equal(fclose(out), 0);
}

static struct tarn_snapshot *given_load(const char *name)
{
    const struct job job = {.file = name};
    struct tarn_snapshot *snapshot;

    assert_int_equal(tarn_snapshot_load(data_path(&job), NULL, &snapshot, NULL), TARN_OK);
    return snapshot;
}

/* The events from `first` to `last` of a run, with what lived then. */
static struct tarn_snapshot *given_part(const char *name, uint64_t first, uint64_t last)
{
    const struct tarn_trim_options how = {
        .struct_size = sizeof how, .has_events = true, .first_event = first, .last_event = last};
    struct tarn_snapshot *whole = given_load(name);
    struct tarn_snapshot *part;

    assert_int_equal(tarn_snapshot_trim(whole, &how, &part, NULL), TARN_OK);
    tarn_snapshot_destroy(whole);
    return part;
}

static struct test_collect summary_make(enum tarn_grouping by)
{
    const struct job job = {.run = fleet, .form = FLEET_SUMMARY, .options = {.by = by}};
    const struct outcome outcome = job_run(&job, 0);

    assert_int_equal(outcome.status, TARN_OK);
    return outcome.text;
}

static void files_make(void)
{
    static const char suppressions[] = "# known\nleak:^torch*\nleak:b\n";
    static const char table[] = "rank,zone\n0,a\n1,b\n2,\"c\"\n5,d\n";
    static const char refining[] = "a category of its own > another: py\n";
    const char *text = tarn_rules_default_text();

    file_write("ranks.tsum", given.summaries[0].text, given.summaries[0].size);
    struct test_collect rules_text = {.text = NULL};

    assert_int_equal(test_collect_write(&rules_text, text, strlen(text)), TARN_OK);
    assert_int_equal(test_collect_write(&rules_text, refining, sizeof refining - 1), TARN_OK);
    file_write("rules", rules_text.text, rules_text.size);
    free(rules_text.text);
    file_write("suppressions", suppressions, sizeof suppressions - 1);
    file_write("labels.csv", table, sizeof table - 1);
}

static int given_make(void **state)
{
    const struct temp_folder folder = temp_folder_make();

    (void)state;
    (void)snprintf(given.folder, sizeof given.folder, "%s", folder.path);
    given.small = given_load("snapshots/tiny.pickle.gz");
    given.graph = given_load("snapshots/cudagraph.pickle.gz");
    given.oom = given_part("snapshots/oom.pickle.gz", 3440, 4470);
    given.steps = given_part("snapshots/multistream.pickle.gz", 280, 1000);
    assert_int_equal(tarn_replay_create(given.graph, -1, &given.replay, NULL), TARN_OK);
    given.summaries[0] = summary_make(TARN_BY_STACK);
    given.summaries[1] = summary_make(TARN_BY_CATEGORY);
    files_make();
    running_open();
    return 0;
}

static int given_end(void **state)
{
    static const char *const names[] = {"ranks.tsum", "rules", "suppressions", "labels.csv"};

    (void)state;
    running_close();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(unlink(folder_path(names[i])), 0);
    }
    assert_int_equal(rmdir(given.folder), 0); /* nothing half is left */
    free(given.summaries[0].text);
    free(given.summaries[1].text);
    tarn_replay_destroy(given.replay);
    tarn_snapshot_destroy(given.steps);
    tarn_snapshot_destroy(given.oom);
    tarn_snapshot_destroy(given.graph);
    tarn_snapshot_destroy(given.small);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    return 0;
}

/* Without a failure; free its text. */
static struct outcome job_run_right(const struct job *job, uint64_t *calls_out)
{
    const uint64_t calls = tarn_host_get_usage().alloc_calls;

    places.begin = calls;
    places.fresh_count = 0;
    places.is_on = true;
    const struct outcome right = job_run(job, 0);

    places.is_on = false;
    *calls_out = tarn_host_get_usage().alloc_calls - calls;
    if (right.status) {
        fail_msg("%s: %s", job->name, right.error.text);
    }
    return right;
}

static void jobs_fail(const struct job *table, size_t count, bool uses_files)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t calls;
        struct outcome right = job_run_right(&table[i], &calls);

        if (memory_fails(&table[i], &right, calls) == 0 && calls > 0) {
            fail_msg("%s: none of %llu allocations failed", table[i].name,
                     (unsigned long long)calls);
        }
        writes_are_refused(&table[i], &right);
        sqlite_fails(&table[i], &right);
        if (uses_files) {
            assert_true(system_fails(&table[i], &right) > 0);
        }
        free(right.text.text);
    }
}

static void what_computes(void **state)
{
    (void)state;
    jobs_fail(jobs, sizeof jobs / sizeof *jobs, false);
}

static void what_reads(void **state)
{
    (void)state;
    jobs_fail(readers, sizeof readers / sizeof *readers, true);
}

/* Whatever fails, there is one whole file. */
static void saver_fails(const struct job *job)
{
    uint64_t n = 0;
    uint64_t failures = 0;
    uint64_t calls;
    struct outcome right = job_run_right(job, &calls);
    const struct test_collect whole = folder_read(job->file);

    assert_true(memory_fails(job, &right, calls) > 0);
    do {
        file_write(job->file, "old", 3);
        struct outcome outcome = job_run_outside(job, FAULT_ERROR, ++n);
        struct test_collect now = folder_read(job->file);
        const bool is_old = now.size == 3 && memcmp(now.text, "old", 3) == 0;

        failures += outcome.status != TARN_OK;
        assert_true(outcome.status == TARN_OK || outcome.status == TARN_ERR_IO);
        if (!is_old) {
            assert_int_equal(now.size, whole.size);
            assert_memory_equal(now.text, whole.text, whole.size);
        }
        assert_true(outcome.status == TARN_OK ? !is_old : outcome.error.status == TARN_ERR_IO);
        free(now.text);
    } while (outside.calls >= n);
    assert_true(failures > 0);
    free(whole.text);
    assert_int_equal(unlink(folder_path(job->file)), 0);
}

static void what_writes_files(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof savers / sizeof *savers; i++) {
        saver_fails(&savers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_computes),
        cmocka_unit_test(what_reads),
        cmocka_unit_test(what_writes_files),
    };

    const struct tarn_host_hooks hooks = {
        .struct_size = sizeof hooks, .alloc = place_alloc, .release = place_release};

    if (tarn_host_set_hooks(&hooks) != TARN_OK) {
        return 1;
    }
#ifdef HAS_SQLITE
    if (!sqlite_init()) {
        return 1;
    }
#endif
    return cmocka_run_group_tests(tests, given_make, given_end);
}
