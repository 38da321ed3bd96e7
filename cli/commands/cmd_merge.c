/* SPDX-License-Identifier: MIT */
/* `tarn merge`: many summaries as one. */
#include "fleet_files.h"
#include "output.h"
#include "overwrite.h"

struct merge_values {
    const char *output;
    bool force;
};

static const struct cli_opt merge_opts[] = {
    CLI_OUTPUT_OPT(struct merge_values),
    {0},
};

static void files_load(const struct cli_call *call, struct tarn_fleet *fleet,
                       const struct cli_fleet_files *files, int *code)
{
    for (size_t i = 0; i < files->count; i++) {
        struct tarn_error error = {.offset = -1};
        const enum tarn_status status = tarn_fleet_load(fleet, files->paths[i], NULL, &error);

        if (status) {
            const int failure =
                (int)cli_fail_status(call->command, status, &error, files->paths[i]);

            *code = *code ? *code : failure;
        }
    }
}

static int files_merge(const struct cli_call *call, struct tarn_fleet *fleet,
                       const struct cli_fleet_files *files, int code)
{
    const struct merge_values *values = call->values;
    struct tarn_error error = {.offset = -1};
    struct cli_output output;

    files_load(call, fleet, files, &code);
    if (tarn_fleet_rank_count(fleet) == 0 && code) {
        return code;
    }
    const int opened = cli_output_open(&output, call->command, values->output);

    if (opened) {
        return opened;
    }
    const enum tarn_status status = tarn_fleet_write(fleet, &output.writer, &error);

    return cli_output_close(&output, call->command, status, &error, code);
}

static enum cli_exit merge_run(const struct cli_call *call)
{
    const struct merge_values *values = call->values;
    struct cli_fleet_files files;
    struct tarn_fleet *fleet;
    struct tarn_error error = {.offset = -1};
    int code = (int)cli_overwrite_check(call->command, values->output, values->force);

    if (code) {
        return (enum cli_exit)code;
    }
    const enum tarn_status status = tarn_fleet_create(&fleet, &error);

    if (status) {
        return cli_fail_status(call->command, status, &error, NULL);
    }
    code = cli_fleet_files_collect(&files, call, &code)
               ? files_merge(call, fleet, &files, code)
               : (int)cli_fail(call->command, CLI_EXIT_LIMIT, "host out of memory");
    cli_fleet_files_release(&files);
    tarn_fleet_destroy(fleet);
    return (enum cli_exit)code;
}

const struct cli_command cli_command_merge = {
    .name = "merge",
    .arguments = "SUMMARY...",
    .arguments_min = 1,
    .arguments_max = -1,
    .help = "join summaries of \"tarn summarize\" into one",
    .details = "The bytes of the result depend on neither the order nor the number of the\n"
               "files, so summaries can be merged in any tree. A file that is given twice\n"
               "counts twice.\n" CLI_FLEET_DETAILS,
    .examples = "tarn merge a.tsum b.tsum -o all.tsum",
    .opts = merge_opts,
    .values_size = sizeof(struct merge_values),
    .is_unpaged = true,
    .run = merge_run,
};
