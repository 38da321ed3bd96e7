/* SPDX-License-Identifier: MIT */
#include "output.h"

#include "command.h"
#include "tarn/snapshot.h"

#include <string.h>

static enum tarn_status write_stdout(void *context, const char *bytes, size_t size)
{
    (void)context;
    return fwrite(bytes, 1, size, stdout) == size ? TARN_OK : TARN_ERR_IO;
}

struct tarn_writer cli_output_writer(void)
{
    return (struct tarn_writer){.write = write_stdout};
}

bool cli_output_is_stdout(const char *path)
{
    return !path || strcmp(path, "-") == 0;
}

int cli_output_open(struct cli_output *output, const struct cli_command *command, const char *path)
{
    struct tarn_error error;

    *output = (struct cli_output){.writer = cli_output_writer(), .path = path};
    if (cli_output_is_stdout(path)) {
        return CLI_EXIT_OK;
    }
    const enum tarn_status status = tarn_file_create(path, &output->file, &error);

    if (status) {
        return (int)cli_fail_status(command, status, &error, NULL);
    }
    output->writer = tarn_file_writer(output->file);
    return CLI_EXIT_OK;
}

int cli_output_close(struct cli_output *output, const struct cli_command *command,
                     enum tarn_status status, struct tarn_error *error, int code)
{
    if (output->file) {
        status = tarn_file_finish(output->file, status, error);
    }
    return status ? (int)cli_fail_status(command, status, error, NULL) : code;
}

struct tarn_snapshot *cli_load_snapshot(const struct cli_command *command, const char *path,
                                        int *exit_out)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;
    const enum tarn_status status = tarn_snapshot_load(path, NULL, &snapshot, &error);

    *exit_out = CLI_EXIT_OK;
    if (status) {
        *exit_out = (int)cli_fail_status(command, status, &error, NULL);
        if (snapshot) {
            (void)fprintf(stderr, "tarn: what could be read follows\n");
        }
    }
    return snapshot;
}
