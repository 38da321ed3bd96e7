/* SPDX-License-Identifier: MIT */
/* `tarn ranks`: many snapshots side by side. */
#include "output.h"
#include "report_run.h"
#include "size_text.h"
#include "tarn/snapshot.h"
#include "trace_run.h"

struct ranks_values {
    struct cli_select_values select;
    uint64_t rows;
    const char *output;
    bool force;
    bool json;
    struct cli_format_values format;
};

static const struct ranks_values ranks_defaults = {.select = CLI_SELECT_DEFAULTS};

static const struct cli_opt ranks_opts[] = {
    CLI_SELECT_OPTS(struct ranks_values), CLI_ROWS_OPT(struct ranks_values),
    CLI_JSON_OPT(struct ranks_values),    CLI_FORM_OPTS(struct ranks_values),
    CLI_OUTPUT_OPT(struct ranks_values),  {0},
};

/* Adds one file; *code is that of the first file that is not whole. False when there is nothing to
 * add, with *code set. */
static bool file_add(const struct cli_call *call, struct tarn_ranks *ranks, const char *path,
                     int *code)
{
    struct tarn_error error = {.offset = -1};
    int loaded;
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, path, &loaded);

    if (!snapshot) {
        *code = loaded;
        return false;
    }
    const enum tarn_status status = tarn_ranks_add(ranks, snapshot, path, &error);

    tarn_snapshot_destroy(snapshot);
    if (status) {
        *code = (int)cli_fail_status(call->command, status, &error, path);
        return false;
    }
    *code = *code ? *code : loaded;
    return true;
}

static int files_run(const struct cli_call *call, struct tarn_ranks *ranks)
{
    const struct ranks_values *values = call->values;
    struct tarn_error error = {.offset = -1};
    struct cli_output output;
    int code = CLI_EXIT_OK;

    for (int i = 0; i < call->argument_count; i++) {
        if (!file_add(call, ranks, call->arguments[i], &code)) {
            return code;
        }
    }
    const int opened = cli_output_open(&output, call->command, values->output);

    if (opened) {
        return opened;
    }
    const enum tarn_status status = tarn_ranks_report(ranks, &output.writer, &error);

    return cli_output_close(&output, call->command, status, &error, code);
}

static enum cli_exit ranks_run(const struct cli_call *call)
{
    const struct ranks_values *values = call->values;
    struct cli_selected selected;
    struct tarn_ranks *ranks;
    struct tarn_error error = {.offset = -1};
    struct tarn_report_options options = {
        .struct_size = sizeof options, .rows = values->rows, .units = cli_units()};
    int code = (int)cli_format_read(call->command, &values->format, values->json, &options.format);

    if (code == CLI_EXIT_OK) {
        code = (int)cli_overwrite_check(call->command, values->output, values->force);
    }
    if (code == CLI_EXIT_OK) {
        code = (int)cli_select_read(call->command, &values->select, &selected);
    }
    if (code) {
        return (enum cli_exit)code;
    }
    cli_select_apply(&selected, &values->select, &options);
    cli_report_style(call, values->output, &options);
    const enum tarn_status status = tarn_ranks_create(&options, &ranks, &error);

    if (status) {
        code = (int)cli_fail_status(call->command, status, &error, NULL);
    } else {
        code = files_run(call, ranks);
    }
    tarn_ranks_destroy(ranks);
    cli_select_release(&selected);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_ranks = {
    .name = "ranks",
    .arguments = "SNAPSHOT...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "compare the snapshots of many ranks, and explain outliers",
    .details = "Compares the requested memory of each rank at its peak, or at --at. An outlier\n"
               "is farther from the median than 3.5 times the median absolute deviation, scaled\n"
               "by 1.4826, and than 1 % of the median. Each is compared, by stack, with the rank\n"
               "nearest to the median. Files are read one at a time.\n",
    .examples = "tarn ranks rank*.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = ranks_opts,
    .values_size = sizeof(struct ranks_values),
    .defaults = &ranks_defaults,
    .run = ranks_run,
};
