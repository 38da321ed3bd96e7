/* SPDX-License-Identifier: MIT */
#include "report_run.h"

#include "output.h"

#include <string.h>

enum cli_exit cli_report_run(const struct cli_call *call, const char *path, cli_report *report,
                             const void *context)
{
    struct cli_output output;
    struct tarn_error error = {.offset = -1};
    int code;
    struct tarn_snapshot *snapshot = cli_load_snapshot(call->command, call->arguments[0], &code);

    if (!snapshot) {
        return (enum cli_exit)code;
    }
    const int opened = cli_output_open(&output, call->command, path);

    if (opened) {
        code = opened;
    } else {
        const enum tarn_status status = report(snapshot, context, &output.writer, &error);

        code = cli_output_close(&output, call->command, status, &error, code);
    }
    tarn_snapshot_destroy(snapshot);
    return (enum cli_exit)code;
}

void cli_report_style(const struct cli_call *call, const char *path,
                      struct tarn_report_options *options)
{
    if (!path || strcmp(path, "-") == 0) {
        options->columns = call->terminal->width;
        options->color = call->terminal->out_color;
        options->is_utf8 = call->terminal->out_is_utf8;
    }
}
