/* SPDX-License-Identifier: MIT */
/* `tarn steps`: a run step by step. */
#include "trace_run.h"

static enum cli_exit steps_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_steps);

    cli_hint(call, code, "\"tarn live --at event:N\" shows what is allocated at any event");
    return code;
}

const struct cli_command cli_command_steps = {
    .name = "steps",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "show peak and growth of each step, and the one that stands out",
    .details = "Steps are annotated (ProfilerStep, Optimizer.step), or begin where a stack\n"
               "repeats. \"peak\" and \"end\" are requested bytes, \"calls\" those to the device:\n"
               "segments allocated and freed, memory mapped and unmapped. A step stands out when\n"
               "its peak is 3.5 or more median absolute deviations (times 1.4826) and more than\n"
               "1 % from the median.\n",
    .examples = "tarn steps dump.pickle\n"
                "tarn steps --rows 5 --csv dump.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_steps_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = steps_run,
};
