/* SPDX-License-Identifier: MIT */
/* `tarn frag`: fragmentation. */
#include "trace_run.h"

static enum cli_exit frag_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_frag);

    cli_hint(call, code,
             "\"tarn replay --conf expandable_segments:True\" shows whether that helps");
    return code;
}

const struct cli_command cli_command_frag = {
    .name = "frag",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "show where reserved memory is lost, and what pins it",
    .details = "Looks at the reserved peak unless --at names another time point. Internal\n"
               "fragmentation is rounding, and remainders too small to split off. External\n"
               "fragmentation is free memory in pieces. Pinned segments cannot be released\n"
               "because of a few small blocks. reserved = requested + rounding + slack + free.\n",
    .examples = "tarn frag dump.pickle\n"
                "tarn frag --at end --json dump.pickle",
    .prints_sizes = true,
    .opts = cli_trace_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = frag_run,
};
