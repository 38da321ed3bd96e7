/* SPDX-License-Identifier: MIT */
/* `tarn segments`: the contents of each segment, as a flame graph. */
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
    .help = "draw the contents of each segment as a flame graph",
    .details = "The levels are stream, segment, state of the block, then the stack that\n"
               "allocated it. The output is one self-contained SVG file: open it in a browser to\n"
               "zoom (click), search (/) and see details. It replaces an existing file, as does\n"
               "`python -m torch.cuda._memory_viz segments`.\n",
    .examples = "tarn segments dump.pickle -o segments.svg",
    .prints_sizes = true,
    .opts = cli_flame_opts,
    .values_size = sizeof(struct cli_flame_values),
    .defaults = &cli_flame_defaults,
    .run = segments_run,
};
