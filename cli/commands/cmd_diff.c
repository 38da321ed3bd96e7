/* SPDX-License-Identifier: MIT */
/* `tarn diff`: what changed between two snapshots, by stack. */
#include "escape.h"
#include "output.h"
#include "pair.h"
#include "report_run.h"
#include "select_text.h"
#include "size_text.h"
#include "trace_run.h"

struct diff_values {
    struct cli_select_values select;
    uint64_t rows;
    const char *output;
    bool force;
    const char *strip_prefix;
    const char *to;
    const char *fail_above;
    bool json;
    struct cli_format_values format;
    bool folded;
    bool ignore_lines;
};

static const struct diff_values diff_defaults = {.select = CLI_SELECT_DEFAULTS};

static const struct cli_opt diff_opts[] = {
    CLI_SELECT_OPTS(struct diff_values),
    {.name = "to",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct diff_values, to),
     .value = "WHEN",
     .help = "time point in AFTER (default: that of --at)"},
    {.name = "ignore-lines",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct diff_values, ignore_lines),
     .help = "treat frames that differ only in their line as equal"},
    {.name = "strip-prefix",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct diff_values, strip_prefix),
     .value = "PATH",
     .help = "remove PATH from the beginning of file names"},
    {.name = "fail-above",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct diff_values, fail_above),
     .value = "GROWTH",
     .help = "exit with 1 if requested memory on a device grew by more, such as 2% or 100MiB"},
    {.name = "folded",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct diff_values, folded),
     .help = "print stacks with both numbers, for differential flame graphs"},
    CLI_ROWS_OPT(struct diff_values),
    CLI_JSON_OPT(struct diff_values),
    CLI_FORM_OPTS(struct diff_values),
    CLI_OUTPUT_OPT(struct diff_values),
    {0},
};

/* What the options say, as the library takes it. */
struct request {
    struct cli_selected selected;
    struct tarn_report_options options;
    struct tarn_diff_options how;
    double percent_max; /* below 0: not limited */
    uint64_t bytes_max; /* when `percent_max` is below 0 and --fail-above is given */
};

static enum cli_exit request_read(const struct cli_call *call, struct request *request)
{
    const struct diff_values *values = call->values;

    request->options = (struct tarn_report_options){
        .struct_size = sizeof request->options, .rows = values->rows, .units = cli_units()};
    if (cli_format_read(call->command, &values->format, values->json, &request->options.format)) {
        return CLI_EXIT_USAGE;
    }
    if (values->folded && (values->json || values->format.jsonl || values->format.csv)) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "--folded is a format of its own: leave out --json, --jsonl and --csv");
    }
    request->how = (struct tarn_diff_options){.struct_size = sizeof request->how,
                                              .ignore_lines = values->ignore_lines,
                                              .strip_prefix = values->strip_prefix,
                                              .folded = values->folded};
    if (values->to && !cli_read_instant(values->to, &request->how.to)) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "option --to: \"%s\" is not a time point; allowed: as for --at",
                        cli_escaped(values->to).text);
    }
    if (values->fail_above &&
        !cli_read_threshold(values->fail_above, &request->percent_max, &request->bytes_max)) {
        return cli_fail(call->command, CLI_EXIT_USAGE,
                        "option --fail-above: \"%s\" is not a limit; allowed: a percentage, "
                        "such as 2%%, or a size, such as 100MiB",
                        cli_escaped(values->fail_above).text);
    }
    const enum cli_exit code = cli_select_read(call->command, &values->select, &request->selected);

    cli_select_apply(&request->selected, &values->select, &request->options);
    cli_report_style(call, values->output, &request->options);
    return code;
}

/* CLI_EXIT_GATE when it grew by more than is allowed. */
static int gate(const struct cli_call *call, const struct request *request,
                const struct tarn_diff_counts *counts, int code)
{
    const struct diff_values *values = call->values;
    const bool is_above = request->percent_max >= 0
                              ? counts->growth_percent > request->percent_max
                              : counts->growth_bytes > (double)request->bytes_max;

    if (!values->fail_above || !is_above || code) {
        return code;
    }
    return (int)cli_fail(call->command, CLI_EXIT_GATE,
                         "requested memory grew by more than %s: %.0f bytes, %.2f%%",
                         values->fail_above, counts->growth_bytes, counts->growth_percent);
}

static int pair_run(const struct cli_call *call, struct request *request,
                    struct tarn_snapshot *const snapshots[2], int code)
{
    const struct diff_values *values = call->values;
    struct tarn_diff_counts counts;
    struct tarn_error error = {.offset = -1};
    struct cli_output output;
    const int opened = cli_output_open(&output, call->command, values->output);

    if (opened) {
        return opened;
    }
    const enum tarn_status status =
        tarn_report_diff(snapshots[0], snapshots[1], &request->options, &request->how,
                         &output.writer, &counts, &error);

    code = cli_output_close(&output, call->command, status, &error, code);
    return status ? code : gate(call, request, &counts, code);
}

static enum cli_exit diff_run(const struct cli_call *call)
{
    const struct diff_values *values = call->values;
    struct tarn_snapshot *snapshots[2];
    struct request request;
    int code = (int)cli_overwrite_check(call->command, values->output, values->force);

    if (code == CLI_EXIT_OK) {
        code = (int)request_read(call, &request);
    }
    if (code) {
        return (enum cli_exit)code;
    }
    if (cli_pair_load(call, snapshots, &code)) {
        code = pair_run(call, &request, snapshots, code);
        tarn_snapshot_destroy(snapshots[1]);
        tarn_snapshot_destroy(snapshots[0]);
    }
    cli_select_release(&request.selected);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_diff = {
    .name = "diff",
    .arguments = "BEFORE AFTER",
    .arguments_min = 2,
    .arguments_max = 2,
    .help = "show what changed between two snapshots, by stack",
    .details = "Compares the peaks, or the time points of --at (in BEFORE) and --to (in AFTER).\n"
               "The same file twice compares two points of one run. Stacks are compared by name,\n"
               "so files of different runs can be compared. The changes of all rows add up.\n"
               "--fail-above makes it a check for CI.\n",
    .examples = "tarn diff rank0.pickle rank1.pickle\n"
                "tarn diff --fail-above 2% rank0.pickle rank1.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = diff_opts,
    .values_size = sizeof(struct diff_values),
    .defaults = &diff_defaults,
    .run = diff_run,
};
