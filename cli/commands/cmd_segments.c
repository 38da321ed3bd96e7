/* SPDX-License-Identifier: MIT */
/* `tarn segments`: what each segment holds, as a flame graph. */
#include "flame_run.h"

static enum cli_exit segments_run(const struct cli_call *call)
{
    return cli_flame_run(call, TARN_FLAME_SEGMENTS);
}

const struct cli_command cli_command_segments = {
    .name = "segments",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "draw what each segment holds, as a flame graph",
    .details = "Rows are stream, segment, state of the block, then the stack that allocated it.\n"
               "The picture is one SVG file that needs nothing else: open it in a browser to zoom\n"
               "(click), search (/) and see details. An existing file is replaced, as by\n"
               "`python -m torch.cuda._memory_viz segments`.\n",
    .examples = "tarn segments dump.pickle -o segments.svg",
    .prints_sizes = true,
    .opts = cli_flame_opts,
    .values_size = sizeof(struct cli_flame_values),
    .defaults = &cli_flame_defaults,
    .run = segments_run,
};
