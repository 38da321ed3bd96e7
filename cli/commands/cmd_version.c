/* SPDX-License-Identifier: MIT */
/* `tarn version`: the library's version at run time. */
#include "command.h"

static enum cli_exit version_run(const struct cli_call *call)
{
    (void)call;
    (void)printf("tarn %s\n", tarn_version());
    return CLI_EXIT_OK;
}

const struct cli_command cli_command_version = {
    .name = "version",
    .arguments = "",
    .help = "print the version",
    .examples = "tarn version",
    .is_unpaged = true,
    .run = version_run,
};
