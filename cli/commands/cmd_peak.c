/* SPDX-License-Identifier: MIT */
/* `tarn peak`: memory by stack at its peaks. */
#include "trace_run.h"

static enum cli_exit peak_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_peak);

    cli_hint(
        call, code,
        "\"tarn frag\" explains reserved memory that is not requested; \"tarn flame\" draws the "
        "peak");
    return code;
}

const struct cli_command cli_command_peak = {
    .name = "peak",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "show memory by stack at the requested and reserved peaks",
    .details = "Shows which stacks allocated the memory, including blocks from before the trace.\n"
               "Tables count requested bytes until the free is complete: requested_bytes of\n"
               "torch.cuda.memory_stats. They add up.\n",
    .examples = "tarn peak dump.pickle\n"
                "tarn peak --tree --min-share 5 dump.pickle\n"
                "tarn peak -n 20 --json -o peak.json dump.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_tree_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = peak_run,
};
