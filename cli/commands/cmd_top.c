/* SPDX-License-Identifier: MIT */
/* `tarn top`: which stacks hold and request the most. */
#include "trace_run.h"

static enum cli_exit top_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_top);

    cli_hint(call, code,
             "\"tarn top --by category\" sums up by purpose; \"tarn leaks\" finds memory that "
             "keeps growing");
    return code;
}

const struct cli_command cli_command_top = {
    .name = "top",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "list the stacks that hold and request the most memory",
    .details = "Columns: bytes held at the requested peak, bytes held at the end, bytes and\n"
               "blocks requested in the trace, and the mean lifetime of a block in events. The\n"
               "columns add up. Memory from before the trace is in the row (not recorded),\n"
               "unless the snapshot still has its stack.\n",
    .examples = "tarn top --sort count -n 5 dump.pickle\n"
                "tarn top --tree --sort requested dump.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_top_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = top_run,
};
