/* SPDX-License-Identifier: MIT */
/* `tarn compare`: segments that only one of two snapshots has. */
#include "flame_run.h"
#include "output.h"
#include "pair.h"

static enum tarn_status write_stderr(void *context, const char *bytes, size_t size)
{
    (void)context;
    return fwrite(bytes, 1, size, stderr) == size ? TARN_OK : TARN_ERR_IO;
}

/* The two lists go to stdout, unless the graph itself does. */
static enum tarn_status lists_write(struct tarn_snapshot *const snapshots[2],
                                    const struct tarn_flame_options *options, bool to_stderr,
                                    struct tarn_error *error)
{
    const struct tarn_writer messages = {.write = write_stderr};
    const struct tarn_writer results = cli_output_writer();
    struct tarn_compare_counts counts;
    const enum tarn_status status = tarn_report_compare_lists(
        snapshots[0], snapshots[1], options, to_stderr ? &messages : &results, &counts, error);

    if (status == TARN_OK && counts.before > 0 && counts.after > 0 &&
        counts.common_addresses == 0 && !cli_is_quiet()) {
        (void)fprintf(stderr,
                      "tarn compare: no segment has the same address in both files, which are "
                      "probably from different runs; \"tarn diff\" compares by stack\n");
    }
    return status;
}

static int pair_run(const struct cli_call *call, struct tarn_snapshot *const snapshots[2], int code)
{
    const struct cli_flame_values *values = call->values;
    const struct tarn_flame_options options = cli_flame_options(values);
    const char *path = cli_flame_output(values);
    struct cli_output output;
    struct tarn_error error;
    const int opened = cli_output_open(&output, call->command, path);

    if (opened) {
        return opened;
    }
    enum tarn_status status = lists_write(snapshots, &options, cli_output_is_stdout(path), &error);

    if (status == TARN_OK) {
        status = tarn_report_compare(snapshots[0], snapshots[1], &options, &output.writer, &error);
    }
    return cli_output_close(&output, call->command, status, &error, code);
}

static enum cli_exit compare_run(const struct cli_call *call)
{
    struct tarn_snapshot *snapshots[2];
    int code;

    if (cli_pair_load(call, snapshots, &code)) {
        code = pair_run(call, snapshots, code);
        tarn_snapshot_destroy(snapshots[1]);
        tarn_snapshot_destroy(snapshots[0]);
    }
    return (enum cli_exit)code;
}

const struct cli_command cli_command_compare = {
    .name = "compare",
    .arguments = "BEFORE AFTER",
    .arguments_min = 2,
    .arguments_max = 2,
    .help = "draw the segments that only one of two snapshots of a run has",
    .details = "Prints the addresses of those segments and writes a flame graph of their\n"
               "contents. If the graph goes to standard output, the addresses go to standard\n"
               "error. Segments are equal if address and size are, so comparing different runs\n"
               "is meaningless; \"tarn diff\" compares those.\n",
    .examples = "tarn compare before.pickle dump.pickle -o changed.svg\n"
                "tarn compare --folded before.pickle dump.pickle",
    .prints_sizes = true,
    .opts = cli_flame_opts,
    .values_size = sizeof(struct cli_flame_values),
    .defaults = &cli_flame_defaults,
    .run = compare_run,
};
