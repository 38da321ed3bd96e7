/* SPDX-License-Identifier: MIT */
/* `tarn churn`: memory that is freed right after its allocation. */
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
    .help = "list the stacks that free memory right after allocating it",
    .details =
        "Counts blocks that are freed within --max-lifetime events of their allocation.\n"
        "\"main size\" is the most frequent size of a row and \"main %\" the share of blocks\n"
        "that have it. Where that share is high, a buffer that is kept would do instead:\n"
        "out=, an in-place operation, a cache.\n",
    .examples = "tarn churn dump.pickle\n"
                "tarn churn --max-lifetime 4 --by size dump.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_churn_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = churn_run,
};
