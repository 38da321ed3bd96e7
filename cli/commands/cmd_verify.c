/* SPDX-License-Identifier: MIT */
/* `tarn verify`: compares the allocator with recorded decisions. */
#include "command.h"
#include "escape.h"
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
     .help = "also make every allocation on this GPU (cuda:0), and check the contents"},
    {0},
};

/* Verifies one log. Returns whether nothing differs; sets *exit_out if the log cannot be read. */
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
    cli_put_escaped(stdout, path);
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
    .help = "compare the allocator with recorded decisions, call by call",
    .details = "Repeats the calls of each log (JSON lines, plain, gzip or zstd; - is standard\n"
               "input) on a simulated device and compares every pointer, event, counter and\n"
               "snapshot. With --memory a GPU backs the recorded addresses: each block is\n"
               "written when it is allocated and must hold the same bytes when it is freed.\n"
               "Exits with 1 if anything differs, and prints the first difference in full.\n",
    .examples = "tarn verify decisions.jsonl.gz",
    .is_redirected = true,
    .opts = verify_opts,
    .values_size = sizeof(struct verify_values),
    .is_unpaged = true,
    .run = verify_run,
};
