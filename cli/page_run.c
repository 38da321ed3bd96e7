/* SPDX-License-Identifier: MIT */
#include "page_run.h"

#include "device_opt.h"
#include "output.h"

const struct cli_page_values cli_page_defaults = {.device = CLI_DEVICE_ALL,
                                                  .output = "output.html"};

enum cli_exit cli_page_run(const struct cli_call *call, enum tarn_page_view view)
{
    const struct cli_page_values *values = call->values;
    struct tarn_page_options options = {.struct_size = sizeof options};
    struct cli_output output;
    struct tarn_error error;
    int code;
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    options.one_device = cli_device_is_given(values->device, &options.device);
    const int opened = cli_output_open(&output, call->command, values->output);

    if (opened) {
        code = opened;
    } else {
        const enum tarn_status status =
            tarn_report_page(snapshot, view, &options, &output.writer, &error);

        code = cli_output_close(&output, call->command, status, &error, code);
    }
    tarn_snapshot_destroy(snapshot);
    return (enum cli_exit)code;
}
