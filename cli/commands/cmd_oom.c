/* SPDX-License-Identifier: MIT */
/* `tarn oom`: why requests failed. */
#include "trace_run.h"

static enum cli_exit oom_run(const struct cli_call *call)
{
    const enum cli_exit code = cli_trace_run(call, tarn_report_oom);

    cli_hint(call, code,
             "\"tarn frag --at oom\" shows where free memory is; \"tarn replay --conf ...\" tries "
             "settings");
    return code;
}

const struct cli_command cli_command_oom = {
    .name = "oom",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "explain why requests failed, and who held the memory",
    .details = "The verdict is one of\n"
               "  fragmented              enough is free where the request could use it, but in\n"
               "                          pieces that are too small\n"
               "  wrong pool or stream    enough is free, but elsewhere\n"
               "  really full             all free memory together would not suffice\n"
               "  rounded by settings     what roundup_power2_divisions adds to blocks would\n"
               "                          have been enough\n"
               "  outside the allocator   others hold what is missing; needs --device-total\n"
               "Requests that failed for the same reason are one cause: its first one in full,\n"
               "and how many followed. At the end is what would have let the run finish: the\n"
               "settings of \"tarn tune\", each on its own, else combined, and more memory; of a\n"
               "long trace only with --remedies.\n"
               "Sizes are rounded as the allocator does: reserved = used + slack + free. \"tarn\n"
               "explain oom-verdicts\" says what helps.\n",
    .examples = "tarn oom oom.pickle\n"
                "tarn oom --device-total 80GiB oom.pickle",
    .prints_sizes = true,
    .folds_lines = true,
    .opts = cli_oom_opts,
    .values_size = sizeof(struct cli_trace_values),
    .defaults = &cli_trace_defaults,
    .run = oom_run,
};
