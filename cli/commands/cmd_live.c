/* SPDX-License-Identifier: MIT */
/* `tarn live`: memory by stack at any point of the trace. */
#include "trace_run.h"

static enum cli_exit live_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_live);

    cli_hint(call, code,
             "\"tarn diff FILE FILE --at A --to B\" shows what changed between two time points");
    return code;
}

const struct cli_command cli_command_live = {
    .name = "live",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "show memory by stack at any point of the trace",
    .details = "Looks at the end of the trace unless --at names another time point: oom is the\n"
               "first failed request, event:N the state right after an event. Tables add up.\n",
    .examples = "tarn live dump.pickle\n"
                "tarn live --at event:100 --by function dump.pickle\n"
                "tarn live --where 'size >= 1MiB && lifetime > 2s' dump.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_tree_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = live_run,
};
