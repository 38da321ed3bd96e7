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
               "fragmentation is rounding, to 512 bytes and by settings, and remainders that\n"
               "were not split off (slack). Free memory is divided into what can be returned\n"
               "to the device at once (whole segments, and whole pages of expandable ones),\n"
               "what is stuck beside live blocks, and what is held by private pools or\n"
               "streams other than the one with the most memory. External fragmentation is\n"
               "the part of what is stuck that is not in the largest piece. Pinned segments\n"
               "cannot be released because of a few small blocks.\n"
               "reserved = requested + rounding + rounded by settings + slack + free.\n",
    .examples = "tarn frag dump.pickle\n"
                "tarn frag --at end --json dump.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_trace_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = frag_run,
};
