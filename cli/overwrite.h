/* SPDX-License-Identifier: MIT */
/*
 * Commands other than PyTorch's replace files, links to files and dangling links only with --force.
 * Devices and pipes are not files in this sense.
 */
#ifndef CLI_OVERWRITE_H
#define CLI_OVERWRITE_H

#include "command.h"

#define CLI_FORCE_OPT(type)                                                                        \
    {                                                                                              \
        .name = "force", .letter = 'f', .kind = CLI_OPT_FLAG, .at = offsetof(type, force),         \
        .help = "replace an existing file"                                                         \
    }

/* `type` has members `output` and `force`. */
#define CLI_OUTPUT_OPT(type)                                                                       \
    {.name = "output",                                                                             \
     .letter = 'o',                                                                                \
     .kind = CLI_OPT_TEXT,                                                                         \
     .at = offsetof(type, output),                                                                 \
     .value = "FILE",                                                                              \
     .help = "output file (default: -, standard output)"},                                         \
        CLI_FORCE_OPT(type)

/* CLI_EXIT_OK if the path may be written: it is stdout, does not exist, is not a regular file, or
 * `force` is set. Otherwise reports it on stderr and returns CLI_EXIT_IO. */
enum cli_exit cli_overwrite_check(const struct cli_command *command, const char *path, bool force);

#endif
