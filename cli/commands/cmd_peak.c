/* SPDX-License-Identifier: MIT */
/* `tarn peak`: what memory was made of at its peaks. */
#include "trace_run.h"

static enum cli_exit peak_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_peak);

    cli_hint(call, code,
             "\"tarn frag\" says why more is reserved than allocated; \"tarn flame\" draws the "
             "peak");
    return code;
}

const struct cli_command cli_command_peak = {
    .name = "peak",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "say what memory was made of when most was allocated, and when most was reserved",
    .details = "By the stack that allocated it, with what was there before the trace began.\n"
               "Allocated are requested bytes, as torch.cuda.memory_stats counts requested_bytes:\n"
               "until the free is complete. Tables add up.\n",
    .examples = "tarn peak dump.pickle\n"
                "tarn peak --tree --min-share 5 dump.pickle\n"
                "tarn peak -n 20 --json -o peak.json dump.pickle",
    .prints_sizes = true,
    .opts = cli_tree_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = peak_run,
};
