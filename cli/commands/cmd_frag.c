/* SPDX-License-Identifier: MIT */
/* `tarn frag`: fragmentation. */
#include "trace_run.h"

static enum cli_exit frag_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_frag);

    cli_hint(call, code,
             "\"tarn replay --conf expandable_segments:True\" tries whether that helps");
    return code;
}

const struct cli_command cli_command_frag = {
    .name = "frag",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "say where reserved memory is lost, and what pins it",
    .details =
        "When most was reserved, unless --at says else. Internal: rounding, and what is too\n"
        "little to split off. External: free, in pieces. Pinned: segments that few small blocks\n"
        "keep from being given back. reserved = requested + rounding + slack + free.\n",
    .examples = "tarn frag dump.pickle\n"
                "tarn frag --at end --json dump.pickle",
    .prints_sizes = true,
    .opts = cli_trace_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = frag_run,
};
