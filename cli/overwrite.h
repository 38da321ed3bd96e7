/* SPDX-License-Identifier: MIT */
/*
 * Commands that are not PyTorch's do not replace a file unless told to, nor a link
 * that leads to one or to nothing. Devices and pipes are no files in this sense.
 */
#ifndef CLI_OVERWRITE_H
#define CLI_OVERWRITE_H

#include "command.h"

#define CLI_FORCE_OPT(type)                                                                        \
    {                                                                                              \
        .name = "force", .letter = 'f', .kind = CLI_OPT_FLAG, .at = offsetof(type, force),         \
        .help = "replace a file that exists"                                                       \
    }

/* CLI_EXIT_OK when the path may be written: it is stdout, is not there, is no plain
 * file, or `force` is set. Else says so on stderr and returns CLI_EXIT_IO. */
enum cli_exit cli_overwrite_check(const struct cli_command *command, const char *path, bool force);

#endif
