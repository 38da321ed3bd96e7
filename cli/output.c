/* SPDX-License-Identifier: MIT */
#include "output.h"

#include "command.h"
#include "draft.h"
#include "escape.h"
#include "progress.h"
#include "tarn/snapshot.h"

#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

/* errno of the first write that failed; later calls change errno. */
static int stdout_reason;

static enum tarn_status write_stdout(void *context, const char *bytes, size_t size)
{
    (void)context;
    if (fwrite(bytes, 1, size, stdout) == size) {
        return TARN_OK;
    }
    stdout_reason = stdout_reason ? stdout_reason : errno;
    return TARN_ERR_IO;
}

bool cli_output_finish(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) {
        return true;
    }
    errno = stdout_reason ? stdout_reason : errno;
    return false;
}

struct tarn_writer cli_output_writer(void)
{
    return (struct tarn_writer){.write = write_stdout};
}

bool cli_output_is_stdout(const char *path)
{
    return !path || strcmp(path, "-") == 0 || strcmp(path, "/dev/stdout") == 0;
}

enum tarn_status cli_output_begin(struct cli_output *output, const char *path,
                                  struct tarn_error *error)
{
    *output = (struct cli_output){.writer = cli_output_writer(), .path = path};
    if (cli_output_is_stdout(path)) {
        return TARN_OK;
    }
    const enum tarn_status status = cli_draft_create(path, &output->file, error);

    if (status == TARN_OK) {
        output->writer = tarn_file_writer(output->file);
    }
    return status;
}

enum tarn_status cli_output_end(struct cli_output *output, enum tarn_status status,
                                struct tarn_error *error)
{
    return output->file ? cli_draft_finish(output->file, status, error) : status;
}

int cli_output_open(struct cli_output *output, const struct cli_command *command, const char *path)
{
    struct tarn_error error;
    const enum tarn_status status = cli_output_begin(output, path, &error);

    return status ? (int)cli_fail_status(command, status, &error, NULL) : CLI_EXIT_OK;
}

int cli_output_close(struct cli_output *output, const struct cli_command *command,
                     enum tarn_status status, struct tarn_error *error, int code)
{
    status = cli_output_end(output, status, error);
    return status ? (int)cli_fail_status(command, status, error, NULL) : code;
}

enum tarn_status cli_snapshot_save(const struct tarn_snapshot *snapshot, const char *path,
                                   struct tarn_error *error)
{
    struct cli_output output;
    enum tarn_status status = cli_output_begin(&output, path, error);

    if (status == TARN_OK) {
        status =
            tarn_snapshot_write(snapshot, tarn_snapshot_format_of(path), &output.writer, error);
        status = cli_output_end(&output, status, error);
    }
    return status;
}

static struct cli_load_rules load_rules;

void cli_load_configure(const struct cli_load_rules *rules)
{
    load_rules = *rules;
}

bool cli_is_quiet(void)
{
    return load_rules.quiet;
}

void cli_note(const char *format, ...)
{
    va_list args;

    if (load_rules.quiet) {
        return;
    }
    (void)fputs("tarn: ", stderr);
    va_start(args, format);
    cli_put_line_escaped(stderr, format, args);
    va_end(args);
}

static bool warning_note(void *context, const struct tarn_snapshot_warning *warning)
{
    (void)context;
    cli_note("warning: %s (%llu time%s, first at byte %llu)", warning->text,
             (unsigned long long)warning->count, warning->count == 1 ? "" : "s",
             (unsigned long long)warning->offset);
    return true;
}

/* What a truncated file still gave. Pickles have the segments first, then the traces, and the
 * settings at the end. */
static void part_note(const struct tarn_snapshot *snapshot)
{
    if (!snapshot) {
        cli_note(
            "no part of it can be used; of a pickle that is cut later, what precedes the cut is "
            "read, of JSON nothing");
        return;
    }
    cli_note("the readable part follows: %zu segments and %llu events; later ones and the settings "
             "are missing",
             tarn_snapshot_segment_count(snapshot),
             (unsigned long long)tarn_snapshot_entry_count(snapshot));
}

static double seconds_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void load_describe(const struct tarn_snapshot *snapshot, const char *path, double seconds)
{
    cli_note("%s: %zu segments, %llu trace events, read in %.3f s", path,
             tarn_snapshot_segment_count(snapshot),
             (unsigned long long)tarn_snapshot_entry_count(snapshot), seconds);
    (void)tarn_snapshot_walk_warnings(snapshot, warning_note, NULL);
}

static bool warning_first(void *context, const struct tarn_snapshot_warning *warning)
{
    *(struct tarn_snapshot_warning *)context = *warning;
    return false;
}

/* With --strict a warning is an error. */
static struct tarn_snapshot *strict_refuse(const struct cli_command *command,
                                           struct tarn_snapshot *snapshot, int *exit_out)
{
    struct tarn_snapshot_warning first;

    if (!snapshot || !load_rules.strict ||
        tarn_snapshot_walk_warnings(snapshot, warning_first, &first) == 0) {
        return snapshot;
    }
    *exit_out = (int)cli_fail(command, CLI_EXIT_FORMAT,
                              "rejected because of --strict: %s (first at byte %llu); without it "
                              "the rest of the snapshot is used",
                              first.text, (unsigned long long)first.offset);
    tarn_snapshot_destroy(snapshot);
    return NULL;
}

/* `what` is what messages begin with, or NULL. */
static struct tarn_snapshot *snapshot_load(const struct cli_command *command, const char *path,
                                           const char *what, int *exit_out)
{
    struct cli_progress progress;
    const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
    const struct tarn_read_limits limits = {
        .struct_size = sizeof limits,
        .strict = load_rules.strict,
        .max_memory = load_rules.mem_limit,
        .progress = cli_progress_begin(&progress, "reading", name, true)};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;
    const double begin = seconds_now();
    const enum tarn_status status = tarn_snapshot_load(path, &limits, &snapshot, &error);

    cli_progress_end(&progress);
    *exit_out = CLI_EXIT_OK;
    if (status && !(snapshot && load_rules.partial)) {
        /* A file that cannot be read is named already. */
        *exit_out =
            (int)cli_fail_status(command, status, &error, status == TARN_ERR_IO ? NULL : what);
        if (status == TARN_ERR_TRUNCATED) {
            part_note(snapshot);
        }
    }
    if (snapshot && load_rules.verbose) {
        load_describe(snapshot, path, seconds_now() - begin);
    }
    return strict_refuse(command, snapshot, exit_out);
}

struct tarn_snapshot *cli_load_snapshot(const struct cli_command *command, const char *path,
                                        int *exit_out)
{
    return snapshot_load(command, path, NULL, exit_out);
}

struct tarn_snapshot *cli_load_one_of(const struct cli_command *command, const char *path,
                                      int *exit_out)
{
    return snapshot_load(command, path, path, exit_out);
}
