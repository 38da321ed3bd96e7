/* SPDX-License-Identifier: MIT */
#include "flame_run.h"

#include "device_opt.h"
#include "report_run.h"
#include "size_text.h"

const struct cli_flame_values cli_flame_defaults = {.device = CLI_DEVICE_ALL};

const struct cli_opt cli_flame_opts[] = {
    CLI_DEVICE_OPT(struct cli_flame_values),
    {.name = "output",
     .letter = 'o',
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct cli_flame_values, output),
     .value = "FILE",
     .help = "output file (default: output.svg); - is standard output"},
    {.name = "folded",
     .kind = CLI_OPT_FLAG,
     .at = offsetof(struct cli_flame_values, folded),
     .help = "print folded stacks for other tools to standard output"},
    {0},
};

struct tarn_flame_options cli_flame_options(const struct cli_flame_values *values)
{
    struct tarn_flame_options options = {
        .struct_size = sizeof options, .folded = values->folded, .units = cli_units()};

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

struct flame_run {
    enum tarn_flame_view view;
    struct tarn_flame_options options;
};

static enum tarn_status flame_write(const struct tarn_snapshot *snapshot, const void *context,
                                    const struct tarn_writer *writer, struct tarn_error *error)
{
    const struct flame_run *run = context;

    return tarn_report_flame(snapshot, run->view, &run->options, writer, error);
}

enum cli_exit cli_flame_run(const struct cli_call *call, enum tarn_flame_view view)
{
    const struct cli_flame_values *values = call->values;
    const struct flame_run run = {.view = view, .options = cli_flame_options(values)};

    return cli_report_run(call, cli_flame_output(values), flame_write, &run);
}
