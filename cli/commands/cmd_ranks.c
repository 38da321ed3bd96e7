/* SPDX-License-Identifier: MIT */
/* `tarn ranks`: many snapshots and summaries side by side. */
#include "fleet_gather.h"
#include "output.h"
#include "report_run.h"
#include "size_text.h"
#include "tarn/snapshot.h"
#include "trace_run.h"

struct ranks_values {
    struct cli_select_values select;
    uint64_t rows;
    const char *labels;
    uint64_t device_total;
    uint64_t since_step;
    bool uses_mpi;
    const char *output;
    bool force;
    bool json;
    struct cli_format_values format;
};

static const struct ranks_values ranks_defaults = {.select = CLI_SELECT_DEFAULTS};

static const struct cli_opt ranks_opts[] = {
    CLI_SELECT_OPTS(struct ranks_values),
    CLI_ROWS_OPT(struct ranks_values),
    {.name = "labels",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct ranks_values, labels),
     .value = "FILE",
     .help = "CSV with more labels: a column that ranks are found by, such as rank, and others"},
    {.name = "device-total",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct ranks_values, device_total),
     .value = "SIZE",
     .help = "memory of each device, for the ranks that fail first"},
    {.name = "since-step",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct ranks_values, since_step),
     .value = "N",
     .help = "show growth since the end of this step (default: the first)"},
    {.name = "mpi",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct ranks_values, uses_mpi),
     .help = "share the files between the processes of mpirun (package tarn-mpi)"},
    CLI_JSON_OPT(struct ranks_values),
    CLI_FORM_OPTS(struct ranks_values),
    CLI_OUTPUT_OPT(struct ranks_values),
    {0},
};

static int fleet_report(const struct cli_call *call, struct tarn_fleet *fleet,
                        const struct tarn_report_options *options, int code)
{
    const struct ranks_values *values = call->values;
    const struct tarn_fleet_options how = {.struct_size = sizeof how,
                                           .device_total = values->device_total,
                                           .since_step = values->since_step};
    struct tarn_error error = {.offset = -1};
    struct cli_output output;
    const int opened = cli_output_open(&output, call->command, values->output);

    if (opened) {
        return opened;
    }
    const enum tarn_status status = tarn_fleet_report(fleet, options, &how, &output.writer, &error);

    return cli_output_close(&output, call->command, status, &error, code);
}

/* Files that cannot be used are reported, and the report is on the others. */
static int fleet_run(const struct cli_call *call, struct tarn_fleet *fleet,
                     const struct tarn_report_options *options)
{
    const struct ranks_values *values = call->values;
    const struct tarn_summary_options how = {.struct_size = sizeof how, .report = options};
    const struct cli_fleet_gather gather = {.call = call,
                                            .labels = values->labels,
                                            .options = &how,
                                            .narrows = cli_select_narrows(&values->select),
                                            .uses_mpi = values->uses_mpi};
    int code = CLI_EXIT_OK;

    if (!cli_fleet_gather(&gather, fleet, &code)) {
        return code;
    }
    return fleet_report(call, fleet, options, code);
}

static enum cli_exit ranks_run(const struct cli_call *call)
{
    const struct ranks_values *values = call->values;
    struct cli_selected selected;
    struct tarn_fleet *fleet;
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
    const enum tarn_status status = tarn_fleet_create(&fleet, &error);

    code = status ? (int)cli_fail_status(call->command, status, &error, NULL)
                  : fleet_run(call, fleet, &options);
    tarn_fleet_destroy(fleet);
    cli_select_release(&selected);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_ranks = {
    .name = "ranks",
    .arguments = "SNAPSHOT...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "compare snapshots or summaries of many ranks, explain outliers",
    .details = "Compares the requested memory of each rank at its peak, or at --at. An outlier\n"
               "is farther from the median than 3.5 times the median absolute deviation, scaled\n"
               "by 1.4826, and than 1 % of the median. Each is compared, by stack, with the rank\n"
               "nearest to the median. Labels that outliers share, groups of like ranks, growth\n"
               "and missing ranks follow. Files are read one at a time.\n" CLI_FLEET_DETAILS,
    .examples = "tarn ranks rank*.pickle\n"
                "tarn ranks --device-total 80GiB a.tsum b.tsum",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = ranks_opts,
    .values_size = sizeof(struct ranks_values),
    .defaults = &ranks_defaults,
    .run = ranks_run,
};
