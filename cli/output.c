/* SPDX-License-Identifier: MIT */
#include "output.h"

#include "command.h"
#include "tarn/snapshot.h"

static enum tarn_status write_stdout(void *context, const char *bytes, size_t size)
{
    (void)context;
    return fwrite(bytes, 1, size, stdout) == size ? TARN_OK : TARN_ERR_IO;
}

struct tarn_writer cli_output_writer(void)
{
    return (struct tarn_writer){.write = write_stdout};
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
