/* SPDX-License-Identifier: MIT */
/* `tarn convert`: a snapshot in another format. */
#include "command.h"
#include "output.h"
#include "overwrite.h"
#include "tarn/snapshot.h"

struct convert_values {
    bool force;
};

static const struct cli_opt convert_opts[] = {
    CLI_FORCE_OPT(struct convert_values),
    {0},
};

static enum cli_exit convert_run(const struct cli_call *call)
{
    const struct convert_values *values = call->values;
    const char *output = call->arguments[1];
    const enum cli_exit checked = cli_overwrite_check(call->command, output, values->force);
    struct tarn_error error;
    int code;

    if (checked) {
        return checked;
    }
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const enum tarn_status status = cli_snapshot_save(snapshot, output, &error);

    if (status) {
        code = (int)cli_fail_status(call->command, status, &error, NULL);
    }
    tarn_snapshot_destroy(snapshot);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_convert = {
    .name = "convert",
    .arguments = "SNAPSHOT OUTPUT",
    .arguments_min = 2,
    .arguments_max = 2,
    .help = "write a snapshot as a pickle or as JSON",
    .details = "OUTPUT is JSON if its name ends in .json, otherwise a pickle of protocol 4,\n"
               "which Python and PyTorch's viewer read; - is standard output. With .gz at the\n"
               "end it is compressed with gzip, with .zst with zstd. All commands read all of\n"
               "these.\n",
    .examples = "tarn convert dump.pickle dump.json\n"
                "tarn convert dump.json again.pickle\n"
                "tarn convert dump.pickle small.pickle.zst",
    .opts = convert_opts,
    .values_size = sizeof(struct convert_values),
    .run = convert_run,
};
