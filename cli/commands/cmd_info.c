/* SPDX-License-Identifier: MIT */
/* `tarn info`: what is in a snapshot. */
#include "trace_run.h"

static enum cli_exit info_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_info);

    cli_hint(call, code,
             "\"tarn peak\" shows memory at its peaks; \"tarn oom\" explains why requests failed");
    return code;
}

const struct cli_command cli_command_info = {
    .name = "info",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "show what is in a snapshot, and what is missing",
    .details = "Shows format, settings, devices, events by action, how many events have a stack,\n"
               "and whether the trace begins mid-run, because its ring buffer overflowed or\n"
               "recording began late.\n",
    .examples = "tarn info dump.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_info_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = info_run,
};
