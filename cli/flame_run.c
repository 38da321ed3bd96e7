/* SPDX-License-Identifier: MIT */
#include "flame_run.h"

#include "device_opt.h"
#include "output.h"

const struct cli_flame_values cli_flame_defaults = {.device = CLI_DEVICE_ALL};

const struct cli_opt cli_flame_opts[] = {
    CLI_DEVICE_OPT(struct cli_flame_values),
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_flame_values, output),
     .value = "FILE",
     .help = "where to write (output.svg); - is standard output"},
    {.name = "folded",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_flame_values, folded),
     .help = "print folded stacks, for other tools, to standard output"},
    {0},
};

struct tarn_flame_options cli_flame_options(const struct cli_flame_values *values)
{
    struct tarn_flame_options options = {.struct_size = sizeof options, .folded = values->folded};

    options.one_device = cli_device_is_given(values->device, &options.device);
    return options;
}

const char *cli_flame_output(const struct cli_flame_values *values)
{
    if (values->output) {
        return values->output;
    }
    return values->folded ? "-" : "output.svg";
}

enum cli_exit cli_flame_run(const struct cli_call *call, enum tarn_flame_view view)
{
    const struct cli_flame_values *values = call->values;
    const struct tarn_flame_options options = cli_flame_options(values);
    struct cli_output output;
    struct tarn_error error;
    int code;
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const int opened = cli_output_open(&output, call->command, cli_flame_output(values));

    if (opened) {
        code = opened;
    } else {
        const enum tarn_status status =
            tarn_report_flame(snapshot, view, &options, &output.writer, &error);

        code = cli_output_close(&output, call->command, status, &error, code);
    }
    tarn_snapshot_destroy(snapshot);
    return (enum cli_exit)code;
}
