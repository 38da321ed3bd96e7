/* SPDX-License-Identifier: MIT */
/* `tarn leaks`: memory that grows from step to step. */
#include "trace_run.h"

static enum cli_exit leaks_run(const struct cli_call *call)
{
    const struct cli_trace_values *values = call->values;
    struct tarn_suppressions *suppressions = NULL;
    struct tarn_error error = {.offset = -1};
    uint64_t leaks = 0;
    const enum tarn_status status =
        values->suppressions ? tarn_suppressions_load(values->suppressions, &suppressions, &error)
                             : TARN_OK;

    if (status) {
        return cli_fail_status(call->command, status, &error, NULL);
    }
    const struct tarn_report_options extra = {.suppressions = suppressions, .leaks_out = &leaks};
    const enum cli_exit code = cli_trace_run_with(call, tarn_report_leaks, &extra);

    tarn_suppressions_destroy(suppressions);
    cli_hint(call, code,
             "\"tarn flame --from step:1 --at end\" draws what grew, if the trace has steps");
    return code == CLI_EXIT_OK && values->fail && leaks > 0 ? CLI_EXIT_GATE : code;
}

const struct cli_command cli_command_leaks = {
    .name = "leaks",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "list the stacks whose memory grows from step to step",
    .details = "Compares the ends of steps. Without step annotations it compares the points\n"
               "where a stack repeats at even intervals, and otherwise the ends of equal parts.\n"
               "Growth is the median of the slopes between all pairs of points, so one large\n"
               "allocation is not a leak. \"from\" is the event at which the stack first grew.\n",
    .examples = "tarn leaks dump.pickle\n"
                "tarn leaks --steps 8 -n 3 dump.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_leaks_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = leaks_run,
};
