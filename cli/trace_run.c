/* SPDX-License-Identifier: MIT */
#include "trace_run.h"

#include "answering.h"
#include "line_fold.h"
#include "output.h"
#include "report_run.h"
#include "size_text.h"

#include <string.h>

const struct cli_trace_values cli_trace_defaults = {.select = CLI_SELECT_DEFAULTS, .min_share = 1};

#define ROWS_OPT   CLI_ROWS_OPT(struct cli_trace_values)
#define JSON_OPT   CLI_JSON_OPT(struct cli_trace_values)
#define FORM_OPTS  CLI_FORM_OPTS(struct cli_trace_values)
#define OUTPUT_OPT CLI_OUTPUT_OPT(struct cli_trace_values)

/* Of reports on a whole trace. */
#define RUN_OPTS                                                                                   \
    CLI_SELECT_WHICH_OPTS(struct cli_trace_values),                                                \
        CLI_SELECT_FRAME_OPTS(struct cli_trace_values),                                            \
        CLI_SELECT_BY_OPT(struct cli_trace_values), CLI_SELECT_RULES_OPT(struct cli_trace_values)

/* In the order of enum tarn_top_order. */
static const char *const orders[] = {"peak", "end", "requested", "count", NULL};

const struct cli_opt cli_trace_opts[] = {
    CLI_SELECT_OPTS(struct cli_trace_values), ROWS_OPT, JSON_OPT, FORM_OPTS, OUTPUT_OPT, {0}};

const struct cli_opt cli_tree_opts[] = {CLI_SELECT_OPTS(struct cli_trace_values),
                                        CLI_TREE_OPTS(struct cli_trace_values),
                                        ROWS_OPT,
                                        JSON_OPT,
                                        FORM_OPTS,
                                        OUTPUT_OPT,
                                        {0}};

const struct cli_opt cli_info_opts[] = {CLI_SELECT_WHICH_OPTS(struct cli_trace_values),
                                        CLI_SELECT_FRAME_OPTS(struct cli_trace_values),
                                        CLI_SELECT_RULES_OPT(struct cli_trace_values),
                                        JSON_OPT,
                                        OUTPUT_OPT,
                                        {0}};

const struct cli_opt cli_churn_opts[] = {
    RUN_OPTS,
    {.name = "max-lifetime",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_trace_values, max_lifetime),
     .value = "N",
     .help = "longest lifetime to count, in events (default: 64)"},
    ROWS_OPT,
    JSON_OPT,
    FORM_OPTS,
    OUTPUT_OPT,
    {0}};

const struct cli_opt cli_leaks_opts[] = {
    RUN_OPTS,
    {.name = "steps",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_trace_values, steps),
     .value = "N",
     .help = "compare at the ends of N equal parts of the trace"},
    {.name = "suppressions",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_trace_values, suppressions),
     .value = "FILE",
     .help = "stacks to ignore, lines \"leak:pattern\""},
    {.name = "fail",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_trace_values, fail),
     .help = "exit with 1 if something leaks"},
    ROWS_OPT,
    JSON_OPT,
    FORM_OPTS,
    OUTPUT_OPT,
    {0}};

const struct cli_opt cli_steps_opts[] = {
    CLI_SELECT_WHICH_OPTS(struct cli_trace_values),
    CLI_SELECT_FRAME_OPTS(struct cli_trace_values),
    CLI_SELECT_RULES_OPT(struct cli_trace_values),
    {.name = "parts",
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_trace_values, steps),
     .value = "N",
     .help = "show N equal parts of the trace instead of steps"},
    {.name = "rows",
     .letter = 'n',
     .kind = CLI_OPT_NUMBER,
     .at = offsetof(struct cli_trace_values, rows),
     .value = "N",
     .help = "only the N steps of highest peak (default: all); the rest is summed in one more row"},
    JSON_OPT,
    FORM_OPTS,
    OUTPUT_OPT,
    {0}};

const struct cli_opt cli_oom_opts[] = {
    CLI_SELECT_OPTS(struct cli_trace_values),
    {.name = "device-total",
     .kind = CLI_OPT_SIZE,
     .at = offsetof(struct cli_trace_values, device_total),
     .value = "SIZE",
     .help = "memory of the device, which snapshots do not record"},
    {.name = "remedies",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_trace_values, remedies),
     .help = "try settings also on a trace of more than 500,000 events"},
    ROWS_OPT,
    JSON_OPT,
    FORM_OPTS,
    OUTPUT_OPT,
    {0}};

const struct cli_opt cli_top_opts[] = {CLI_SELECT_OPTS(struct cli_trace_values),
                                       {.name = "sort",
                                        .kind = CLI_OPT_CHOICE,
                                        .at = offsetof(struct cli_trace_values, order),
                                        .choices = orders,
                                        .help = "sort order of the rows (default: peak)"},
                                       CLI_TREE_OPTS(struct cli_trace_values),
                                       ROWS_OPT,
                                       JSON_OPT,
                                       FORM_OPTS,
                                       OUTPUT_OPT,
                                       {0}};

enum {
    HINT_MAX = 512
};

struct trace_run {
    cli_trace_report *report;
    struct tarn_report_options options;
    bool tries_all;
};

enum cli_exit cli_format_read(const struct cli_command *command,
                              const struct cli_format_values *values, bool json,
                              enum tarn_report_format *format_out)
{
    *format_out = values->jsonl ? TARN_REPORT_JSONL
                  : values->csv ? TARN_REPORT_CSV
                  : json        ? TARN_REPORT_JSON
                                : TARN_REPORT_TEXT;
    if (json + values->jsonl + values->csv > 1) {
        return cli_fail(command, CLI_EXIT_USAGE, "give one of --json, --jsonl and --csv");
    }
    return CLI_EXIT_OK;
}

static enum tarn_status trace_write(const struct tarn_snapshot *snapshot, const void *context,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct trace_run *run = context;
    struct tarn_report_options options = run->options;
    struct cli_answering answering = {.snapshot = snapshot, .tries_all = run->tries_all};

    cli_answering_attach(&answering, &options);
    const enum tarn_status status = run->report(snapshot, &options, writer, error);

    cli_answering_release(&answering);
    return status;
}

void cli_hint(const struct cli_call *call, enum cli_exit code, const char *text)
{
    if (code == CLI_EXIT_OK && call->terminal->err_is_terminal) {
        char line[HINT_MAX];
        cli_line_fold_end(); /* the hint comes after the output */
        const int length = snprintf(line, sizeof line, "tarn: next: %s", text);

        cli_line_fold_put(stderr, line, (size_t)length, cli_terminal_err_width());
    }
}

enum cli_exit cli_trace_run(const struct cli_call *call, cli_trace_report *report)
{
    return cli_trace_run_with(call, report, NULL);
}

enum cli_exit cli_trace_run_with(const struct cli_call *call, cli_trace_report *report,
                                 const struct tarn_report_options *extra)
{
    const struct cli_trace_values *values = call->values;
    struct cli_selected selected;
    struct trace_run run = {
        .report = report, .options = extra ? *extra : (struct tarn_report_options){.tree = false}};

    run.options.struct_size = sizeof run.options;
    run.options.rows = values->rows;
    run.options.device_total = values->device_total;
    run.options.order = (enum tarn_top_order)values->order;
    run.options.lifetime_max = values->max_lifetime;
    run.options.parts = values->steps;
    run.options.units = cli_units();
    run.options.tree = values->tree;
    run.options.min_share = values->min_share;
    run.tries_all = values->remedies;
    enum cli_exit code =
        cli_format_read(call->command, &values->format, values->json, &run.options.format);

    if (code == CLI_EXIT_OK) {
        code = cli_overwrite_check(call->command, values->output, values->force);
    }
    if (code == CLI_EXIT_OK) {
        code = cli_select_read(call->command, &values->select, &selected);
    }
    if (code) {
        return code;
    }
    cli_select_apply(&selected, &values->select, &run.options);
    cli_report_style(call, values->output, &run.options);
    code = cli_report_run(call, values->output, trace_write, &run);
    cli_select_release(&selected);
    return code;
}
