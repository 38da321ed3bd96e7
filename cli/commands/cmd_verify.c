/* SPDX-License-Identifier: MIT */
/* tarn verify: holds the allocator against recorded decisions. */
#include "command.h"
#include "show.h"
#include "tarn/verify.h"

#include <inttypes.h>
#include <stdio.h>

struct verify_values {
    const char *memory; /* device spec, or NULL */
};

static const struct cli_opt verify_opts[] = {
    {.name = "memory",
     .kind = CLI_OPT_TEXT,
     .at = offsetof(struct verify_values, memory),
     .value = "GPU",
     .help = "make every allocation on this GPU (cuda:0) too, and look after the contents"},
    {0},
};

/* One log. Returns whether nothing differs; a log that cannot be read sets *exit_out. */
static bool verify_one(const struct cli_command *command, const char *path,
                       const struct tarn_verify_options *options, enum cli_exit *exit_out)
{
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error;
    const enum tarn_status status = tarn_verify_log(path, options, &result, &error);

    if (status) {
        *exit_out = cli_fail_status(command, status, &error, path);
        return false;
    }
    cli_show(stdout, path);
    printf(": %" PRIu64 " calls, %" PRIu64 " differ", result.calls, result.differing);
    if (options->memory) {
        printf(", contents of %" PRIu64 " blocks read", result.blocks_read);
    }
    printf("\n%s", result.first);
    return result.differing == 0;
}

static enum cli_exit verify_run(const struct cli_call *call)
{
    const struct verify_values *values = call->values;
    struct tarn_verify_options options = {.struct_size = sizeof options};
    enum cli_exit code = CLI_EXIT_OK;
    struct tarn_error error;
    bool good = true;

    if (values->memory) {
        const enum tarn_status status = tarn_device_open(values->memory, &options.memory, &error);

        if (status) {
            return cli_fail_status(call->command, status, &error, NULL);
        }
    }
    for (int i = 0; i < call->argument_count; i++) {
        good = verify_one(call->command, call->arguments[i], &options, &code) && good;
    }
    tarn_device_close(options.memory);
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
        "With --memory, a GPU's memory lies behind the recorded addresses: each block is written\n"
        "when it is handed out and must hold the same when it is freed.\n"
        "Exits with 1 when anything differs and shows the first difference in full.\n",
    .examples = "tarn verify decisions.jsonl.gz",
    .is_redirected = true,
    .opts = verify_opts,
    .values_size = sizeof(struct verify_values),
    .is_unpaged = true,
    .run = verify_run,
};
