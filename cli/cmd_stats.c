/* SPDX-License-Identifier: MIT */
/* `tarn stats`: the segment summary of PyTorch's _memory_viz. */
#include "command.h"
#include "output.h"
#include "tarn/report.h"

static enum cli_exit stats_run(const struct cli_call *call)
{
    const char *path = call->arguments[0];
    const struct tarn_writer writer = cli_output_writer();
    struct tarn_error error;
    int code;
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, path, &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const enum tarn_status status = tarn_report_stats(snapshot, &writer, &error);

    if (status) {
        code = (int)cli_fail_status(call->command, status, &error, path);
    }
    tarn_snapshot_destroy(snapshot);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_stats = {
    .name = "stats",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "print a snapshot's segments page by page, and totals",
    .details =
        "The text is that of `python -m torch.cuda._memory_viz stats`, less its empty last line.\n"
        "SNAPSHOT is what torch.cuda.memory._dump_snapshot wrote, plain, gzip or zstd;\n"
        "- is standard input.\n",
    .run = stats_run,
};
