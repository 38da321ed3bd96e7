/* SPDX-License-Identifier: MIT */
/* `tarn peak`: what memory was made of at its peaks. */
#include "trace_run.h"

static enum cli_exit peak_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_peak);

    cli_hint(call, code,
             "\"tarn frag\" says why more is reserved than in use; \"tarn flame\" draws the peak");
    return code;
}

const struct cli_command cli_command_peak = {
    .name = "peak",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "say what memory was made of when most was in use, and when most was reserved",
    .details = "By the stack that asked for it, with what was there before the trace began.\n"
               "In use are bytes asked for, as requested_bytes of torch.cuda.memory_stats counts\n"
               "them: until the free is complete. Tables add up.\n",
    .examples = "tarn peak dump.pickle\n"
                "tarn peak --tree --min-share 5 dump.pickle\n"
                "tarn peak -n 20 --json -o peak.json dump.pickle",
    .prints_sizes = true,
    .opts = cli_tree_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = peak_run,
};
