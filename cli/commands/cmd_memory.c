/* SPDX-License-Identifier: MIT */
/* `tarn memory`: memory by stack, as a flame graph. */
#include "flame_run.h"

static enum cli_exit memory_run(const struct cli_call *call)
{
    return cli_flame_run(call, TARN_FLAME_MEMORY);
}

const struct cli_command cli_command_memory = {
    .name = "memory",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "draw memory by stack as a flame graph",
    .details = "The levels are stream, state of the block, then the stack that allocated it. The\n"
               "output is one self-contained SVG file: open it in a browser to zoom (click),\n"
               "search (/) and see details. It replaces an existing file, as does `python -m\n"
               "torch.cuda._memory_viz memory`.\n",
    .examples = "tarn memory dump.pickle -o memory.svg\n"
                "tarn memory --folded dump.pickle",
    .prints_sizes = true,
    .opts = cli_flame_opts,
    .values_size = sizeof(struct cli_flame_values),
    .defaults = &cli_flame_defaults,
    .run = memory_run,
};
