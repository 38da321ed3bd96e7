/* SPDX-License-Identifier: MIT */
/* `tarn memory`: which stacks hold memory, as a flame graph. */
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
    .help = "draw which stacks hold memory, as a flame graph",
    .details = "Rows are stream, state of the block, then the stack that allocated it.\n"
               "The picture is one SVG file that needs nothing else: open it in a browser to zoom\n"
               "(click), search (/) and see details. An existing file is replaced, as by\n"
               "`python -m torch.cuda._memory_viz memory`.\n",
    .examples = "tarn memory dump.pickle -o memory.svg\n"
                "tarn memory --folded dump.pickle",
    .prints_sizes = true,
    .opts = cli_flame_opts,
    .values_size = sizeof(struct cli_flame_values),
    .defaults = &cli_flame_defaults,
    .run = memory_run,
};
