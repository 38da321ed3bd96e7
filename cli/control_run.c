/* SPDX-License-Identifier: MIT */
#include "control_run.h"

#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 9,
    TIMEOUT_MAX_S = 3600
};

enum cli_exit cli_control_process(const struct cli_call *call, int64_t *process_out)
{
    const char *text = call->arguments[0];
    const size_t length = strlen(text);

    if (length == 0 || length > DIGITS_MAX || strspn(text, "0123456789") != length) {
        return cli_fail(call->command, CLI_EXIT_USAGE, "\"%s\" is not the number of a process",
                        text);
    }
    *process_out = strtoll(text, NULL, 10);
    return CLI_EXIT_OK;
}

const char *cli_control_folder(const struct cli_control_values *values)
{
    return values->folder ? values->folder : getenv("XDG_RUNTIME_DIR");
}

uint32_t cli_control_timeout(const struct cli_control_values *values)
{
    const double seconds = values->timeout > 0.001 ? values->timeout : 0.001;

    return (uint32_t)((seconds < TIMEOUT_MAX_S ? seconds : TIMEOUT_MAX_S) * 1000);
}

enum cli_exit cli_control_failed(const struct cli_call *call, enum tarn_status status,
                                 const struct tarn_error *error)
{
    return status == TARN_ERR_NOT_FOUND || status == TARN_ERR_NOT_READY || status == TARN_ERR_STATE
               ? cli_fail(call->command, CLI_EXIT_IO, "%s", error->text)
               : cli_fail_status(call->command, status, error, NULL);
}
