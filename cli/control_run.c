/* SPDX-License-Identifier: MIT */
#include "control_run.h"

#include <stdlib.h>
#include <string.h>

enum {
    DIGITS_MAX = 9,
    TIMEOUT_MAX_S = 3600
};

/* A process whose program's name contains a text. */
struct wanted {
    const char *name;
    int64_t process; /* the last one found */
    unsigned count;
};

static bool wanted_visit(void *context, const struct tarn_watch_process *process)
{
    struct wanted *wanted = context;

    if (strstr(process->program, wanted->name)) {
        wanted->process = process->process;
        wanted->count++;
    }
    return true;
}

enum cli_exit cli_control_process(const struct cli_call *call,
                                  const struct cli_control_values *values, int64_t *process_out)
{
    struct wanted wanted = {.name = call->arguments[0]};
    struct tarn_error error = {.offset = -1};
    const size_t length = strlen(wanted.name);

    if (length > 0 && length <= DIGITS_MAX && strspn(wanted.name, "0123456789") == length) {
        *process_out = strtoll(wanted.name, NULL, 10);
        return CLI_EXIT_OK;
    }
    const enum tarn_status status =
        tarn_watch_list(cli_control_folder(values), wanted_visit, &wanted, &error);

    if (status) {
        return cli_control_failed(call, status, &error);
    }
    if (wanted.count != 1) {
        return cli_fail(call->command, wanted.count > 0 ? CLI_EXIT_USAGE : CLI_EXIT_IO,
                        "%u processes that can be watched have a name that contains \"%s\"",
                        wanted.count, wanted.name);
    }
    *process_out = wanted.process;
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
