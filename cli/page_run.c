/* SPDX-License-Identifier: MIT */
#include "page_run.h"

#include "device_opt.h"
#include "output.h"
#include "overwrite.h"
#include "page_answers.h"
#include "pair.h"
#include "select_opt.h"
#include "size_text.h"
#include "tarn/trim.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE_MAX ((uint64_t)64 << 20)

enum {
    NAME_MAX_BYTES = 256,
    NAME_LONGEST = 240, /* that leaves room for what is appended */
    TITLE_MAX_BYTES = 512
};

const struct cli_page_values cli_page_defaults = {
    .device = CLI_DEVICE_ALL, .output = "output.html", .force = true};
const struct cli_page_values cli_view_defaults = {
    .device = CLI_DEVICE_ALL, .max_bytes = PAGE_MAX, .names_output = true};

const char *const cli_page_redact_choices[] = {"nothing", "paths", "all", NULL};

/* What a limit on the page's size has cost. */
static void note_dropped(uint64_t dropped, uint64_t max_bytes)
{
    if (dropped > 0) {
        cli_note("the page leaves out the oldest %" PRIu64 " %s to stay within %s; its figures are "
                 "those of the rest (--max-size 0 keeps all)",
                 dropped, dropped == 1 ? "event" : "events", cli_size_text(max_bytes).text);
    }
}

/* The file name of a snapshot without its directory: "dump.pickle.gz". */
static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    if (strcmp(path, "-") == 0) {
        return "snapshot";
    }
    return slash && slash[1] ? slash + 1 : path;
}

size_t cli_page_stem(const char *path, const char **stem_out)
{
    const char *file = file_name(path);
    const size_t length = strcspn(file, ".");

    *stem_out = file;
    return length > 0 ? length : strlen(file); /* up to the first dot */
}

/* "dump.html" for "folder/dump.pickle.gz". Of two recordings it is "dump_diff.html", after the
 * second. */
static const char *output_name(char name[NAME_MAX_BYTES], const struct cli_call *call)
{
    const bool is_pair = call->argument_count > 1;
    const char *stem;
    const size_t length = cli_page_stem(call->arguments[is_pair ? 1 : 0], &stem);

    (void)snprintf(name, NAME_MAX_BYTES, "%.*s%s.html",
                   (int)(length < NAME_LONGEST ? length : NAME_LONGEST), stem,
                   is_pair ? "_diff" : "");
    return name;
}

/* "before.pickle to after.pickle". */
static const char *title_of(char title[TITLE_MAX_BYTES], const struct cli_call *call)
{
    const struct cli_page_values *values = call->values;

    if (values->title) {
        return values->title;
    }
    if (call->argument_count == 1) {
        return file_name(call->arguments[0]);
    }
    (void)snprintf(title, TITLE_MAX_BYTES, "%.240s to %.240s", file_name(call->arguments[0]),
                   file_name(call->arguments[1]));
    return title;
}

/* ---- writing ---- */

static int page_write(const struct cli_call *call, const char *path,
                      const struct tarn_view_run *runs, const struct tarn_view_options *options,
                      int code)
{
    struct tarn_error error = {.offset = -1};
    struct cli_output output;
    const int opened = cli_output_open(&output, call->command, path);

    if (opened) {
        return opened;
    }
    const enum tarn_status status =
        tarn_view_write_runs(runs, (size_t)call->argument_count, options, &output.writer, &error);

    return cli_output_close(&output, call->command, status, &error, code);
}

/* Loads one snapshot, or both; false with *code_out set if there is nothing to write. */
static bool snapshots_load(const struct cli_call *call, struct tarn_snapshot *snapshots[2],
                           int *code_out)
{
    snapshots[1] = NULL;
    if (call->argument_count > 1) {
        return cli_pair_load(call, snapshots, code_out);
    }
    snapshots[0] = cli_load_snapshot(call->command, call->arguments[0], code_out);
    return snapshots[0] != NULL;
}

static enum tarn_status answers_gather(const struct cli_call *call,
                                       struct cli_page_answers *answers, struct tarn_view_run *run,
                                       const struct tarn_view_options *options,
                                       struct tarn_error *error)
{
    const struct cli_page_values *values = call->values;
    const bool unwanted = values->no_answers || values->filter_freed; /* a run that never was */
    const enum cli_page_answers_wanted wanted = unwanted          ? CLI_PAGE_ANSWERS_NEVER
                                                : values->answers ? CLI_PAGE_ANSWERS_ALWAYS
                                                                  : CLI_PAGE_ANSWERS_OF_SHORT;

    run->answers = &answers->view;
    return cli_page_answers_gather(answers, run->snapshot, options->one_device, options->device,
                                   wanted, error);
}

/* Writes the page with what the program finds out about its recordings. */
static int answered_write(const struct cli_call *call, const char *path, struct tarn_view_run *runs,
                          struct cli_page_answers *answers, const struct tarn_view_options *options,
                          int code)
{
    struct tarn_error error = {.offset = -1};
    enum tarn_status status = TARN_OK;
    int count = 0;

    while (count < call->argument_count && status == TARN_OK) {
        status = answers_gather(call, &answers[count], &runs[count], options, &error);
        count++;
    }
    code = status ? (int)cli_fail_status(call->command, status, &error, NULL)
                  : page_write(call, path, runs, options, code);
    while (count > 0) {
        cli_page_answers_release(&answers[--count]);
    }
    return code;
}

/* Replaces the snapshot by one in which nothing is freed. */
static int freed_drop(const struct cli_call *call, struct tarn_snapshot **snapshot)
{
    const struct tarn_trim_options options = {.struct_size = sizeof options, .drop_freed = true};
    struct tarn_error error = {.offset = -1};
    struct tarn_snapshot *trimmed;
    const enum tarn_status status = tarn_snapshot_trim(*snapshot, &options, &trimmed, &error);

    if (status) {
        return (int)cli_fail_status(call->command, status, &error, NULL);
    }
    tarn_snapshot_destroy(*snapshot);
    *snapshot = trimmed;
    return CLI_EXIT_OK;
}

static int page_make(const struct cli_call *call, const char *path,
                     const struct tarn_view_options *options)
{
    const struct cli_page_values *values = call->values;
    struct tarn_snapshot *snapshots[2];
    struct tarn_view_run runs[TARN_VIEW_RUNS_MAX];
    struct cli_page_answers answers[TARN_VIEW_RUNS_MAX];
    int code;

    if (!snapshots_load(call, snapshots, &code)) {
        return code;
    }
    const int failed = values->filter_freed ? freed_drop(call, &snapshots[0]) : CLI_EXIT_OK;

    for (int i = 0; i < call->argument_count; i++) {
        runs[i] = (struct tarn_view_run){.struct_size = sizeof runs[i],
                                         .snapshot = snapshots[i],
                                         .name = file_name(call->arguments[i])};
    }
    code = failed ? failed : answered_write(call, path, runs, answers, options, code);
    tarn_snapshot_destroy(snapshots[1]);
    tarn_snapshot_destroy(snapshots[0]);
    return code;
}

/* What to say once the page is there. */
static void page_note(const struct cli_page_values *values, const char *output, uint64_t dropped)
{
    if (values->names_output && !cli_output_is_stdout(output)) {
        cli_note("wrote %s", output);
    }
    note_dropped(dropped, values->max_bytes);
}

enum cli_exit cli_page_run(const struct cli_call *call, enum tarn_view view)
{
    const struct cli_page_values *values = call->values;
    struct tarn_view_options options = {.struct_size = sizeof options,
                                        .view = view,
                                        .redact = (enum tarn_view_redact)values->redact,
                                        .max_bytes = values->max_bytes};
    char name[NAME_MAX_BYTES];
    char title[TITLE_MAX_BYTES];
    uint64_t dropped = 0;

    const char *output = values->output ? values->output : output_name(name, call);
    struct tarn_rules *rules = NULL;
    int code = (int)cli_overwrite_check(call->command, output, values->force);

    if (code == CLI_EXIT_OK && values->answers && values->no_answers) {
        code =
            (int)cli_fail(call->command, CLI_EXIT_USAGE, "give one of --answers and --no-answers");
    }
    if (code == CLI_EXIT_OK) {
        code = (int)cli_rules_load(call->command, values->rules, &rules);
    }
    options.title = title_of(title, call);
    options.rules = rules;
    options.dropped_out = &dropped;
    options.one_device = cli_device_is_given(values->device, &options.device);
    code = code ? code : page_make(call, output, &options);
    if (code == CLI_EXIT_OK) {
        page_note(values, output, dropped);
    }
    tarn_rules_destroy(rules);
    return (enum cli_exit)code;
}

enum cli_exit cli_page_run_empty(const struct cli_call *call)
{
    const struct cli_page_values *values = call->values;
    const struct tarn_view_options options = {.struct_size = sizeof options,
                                              .title = values->title ? values->title : "tarn"};
    const char *path = values->output ? values->output : "viewer.html";
    struct tarn_error error = {.offset = -1};
    struct cli_output output;
    int code = (int)cli_overwrite_check(call->command, path, values->force);

    if (code == CLI_EXIT_OK && call->argument_count > 0) {
        code = (int)cli_fail(call->command, CLI_EXIT_USAGE,
                             "--empty writes a page without a snapshot");
    }
    code = code ? code : cli_output_open(&output, call->command, path);
    if (code) {
        return (enum cli_exit)code;
    }
    const enum tarn_status status = tarn_view_write_empty(&options, &output.writer, &error);

    code = cli_output_close(&output, call->command, status, &error, CLI_EXIT_OK);
    if (code == CLI_EXIT_OK) {
        page_note(values, path, 0);
    }
    return (enum cli_exit)code;
}
