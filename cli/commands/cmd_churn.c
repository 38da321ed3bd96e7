/* SPDX-License-Identifier: MIT */
/* `tarn churn`: memory that is given back at once. */
#include "trace_run.h"

static enum cli_exit churn_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_churn);

    cli_hint(call, code, "\"tarn top --sort count\" counts all allocations, long ones as well");
    return code;
}

const struct cli_command cli_command_churn = {
    .name = "churn",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "list who asks for memory and gives it back at once",
    .details =
        "Blocks freed within --max-life events of the trace, by how many there are. Where they\n"
        "are mostly of one size, one block that is kept would do: out=, in-place, a cache.\n",
    .examples = "tarn churn dump.pickle\n"
                "tarn churn --max-life 4 --by size dump.pickle",
    .prints_sizes = true,
    .opts = cli_churn_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = churn_run,
};
