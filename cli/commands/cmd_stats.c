/* SPDX-License-Identifier: MIT */
/* `tarn stats`: the segment summary of PyTorch's _memory_viz. */
#include "report_run.h"
#include "size_text.h"
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
     .help = "output file (default: -, standard output)"},
    {0},
};

static enum tarn_status stats_write(const struct tarn_snapshot *snapshot, const void *context,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    (void)context;
    return tarn_report_stats(snapshot, cli_units(), writer, error);
}

static enum cli_exit stats_run(const struct cli_call *call)
{
    const struct stats_values *values = call->values;

    return cli_report_run(call, values->output, stats_write, NULL);
}

const struct cli_command cli_command_stats = {
    .name = "stats",
    .arguments = "SNAPSHOT",
    .arguments_min = 1,
    .arguments_max = 1,
    .help = "print the pages of each segment, and totals",
    .details = "The text is that of `python -m torch.cuda._memory_viz stats` without the final\n"
               "empty line. SNAPSHOT is a file of torch.cuda.memory._dump_snapshot, plain, gzip\n"
               "or zstd; - is standard input.\n",
    .examples = "tarn stats dump.pickle\n"
                "gunzip -c dump.pickle.gz | tarn stats -",
    .prints_sizes = true,
    .opts = stats_opts,
    .values_size = sizeof(struct stats_values),
    .run = stats_run,
};
