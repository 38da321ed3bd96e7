/* SPDX-License-Identifier: MIT */
/* tarn verify: holds the allocator against recorded decisions. */
#include "command.h"
#include "tarn/verify.h"

#include <inttypes.h>
#include <stdio.h>

/* One log. Returns whether nothing differs; a log that cannot be read sets *exit_out. */
static bool verify_one(const struct cli_command *command, const char *path, enum cli_exit *exit_out)
{
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error;
    const enum tarn_status status = tarn_verify_log(path, &result, &error);

    if (status) {
        *exit_out = cli_fail_status(command, status, &error, path);
        return false;
    }
    printf("%s: %" PRIu64 " calls, %" PRIu64 " differ\n", path, result.calls, result.differing);
    if (result.differing > 0) {
        printf("%s", result.first);
    }
    return result.differing == 0;
}

static enum cli_exit verify_run(const struct cli_call *call)
{
    enum cli_exit code = CLI_EXIT_OK;
    bool good = true;

    for (int i = 0; i < call->argument_count; i++) {
        good = verify_one(call->command, call->arguments[i], &code) && good;
    }
    return code != CLI_EXIT_OK || good ? code : CLI_EXIT_GATE;
}

const struct cli_command cli_command_verify = {
    .name = "verify",
    .arguments = "LOG...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "hold the allocator against recorded decisions, call by call",
    .details =
        "Makes the calls of each log (JSON lines, plain or gzip or zstd; - is standard input)\n"
        "on a simulated device and compares every pointer, event, counter and snapshot.\n"
        "Exits with 1 when anything differs and shows the first difference in full.\n",
    .run = verify_run,
};
