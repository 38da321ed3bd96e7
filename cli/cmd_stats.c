/* SPDX-License-Identifier: MIT */
/* `tarn stats`: the segment summary of PyTorch's _memory_viz. */
#include "command.h"
#include "output.h"
#include "tarn/report.h"

struct stats_values {
    const char *output;
};

static const struct cli_opt stats_opts[] = {
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct stats_values, output),
     .value = "FILE",
     .help = "where to write; - is standard output, the default"},
    {0},
};

static enum cli_exit stats_run(const struct cli_call *call)
{
    const struct stats_values *values = call->values;
    const char *path = call->arguments[0];
    struct cli_output output;
    struct tarn_error error;
    int code;
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, path, &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const int opened = cli_output_open(&output, call->command, values->output);

    if (opened) {
        code = opened;
    } else {
        const enum tarn_status status = tarn_report_stats(snapshot, &output.writer, &error);

        code = cli_output_close(&output, call->command, status, &error, code);
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
    .opts = stats_opts,
    .values_size = sizeof(struct stats_values),
    .run = stats_run,
};
