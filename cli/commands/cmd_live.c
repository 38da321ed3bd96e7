/* SPDX-License-Identifier: MIT */
/* `tarn live`: what memory is made of at any instant. */
#include "trace_run.h"

static enum cli_exit live_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_live);

    cli_hint(call, code,
             "\"tarn diff FILE FILE --at A --to B\" says what changed between two instants");
    return code;
}

const struct cli_command cli_command_live = {
    .name = "live",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "say what memory was made of at any instant",
    .details = "At the end of the trace unless --at says else: --at oom is the first request that\n"
               "failed, --at event:N right after an event of the trace. Tables add up.\n",
    .examples = "tarn live dump.pickle\n"
                "tarn live --at event:100 --by function dump.pickle\n"
                "tarn live --where 'size >= 1MiB && life > 2s' dump.pickle",
    .prints_sizes = true,
    .opts = cli_tree_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = live_run,
};
