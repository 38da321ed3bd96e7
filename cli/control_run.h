/* SPDX-License-Identifier: MIT */
/* What commands that ask a running process for something have in common. */
#ifndef CLI_CONTROL_RUN_H
#define CLI_CONTROL_RUN_H

#include "command.h"

#include "tarn/watch_control.h"
#include "tarn/watch_read.h"

struct cli_control_values {
    const char *folder;
    double timeout; /* seconds */
};

#define CLI_CONTROL_DEFAULTS                                                                       \
    {                                                                                              \
        .timeout = 30                                                                              \
    }

#define CLI_CONTROL_OPTS(type)                                                                     \
    {.name = "folder",                                                                             \
     .kind = CLI_OPT_TEXT,                                                                         \
     .at = offsetof(type, control.folder),                                                         \
     .value = "DIR",                                                                               \
     .help = "look there instead of in $XDG_RUNTIME_DIR"},                                         \
    {                                                                                              \
        .name = "timeout", .kind = CLI_OPT_REAL, .at = offsetof(type, control.timeout),            \
        .value = "SECONDS", .help = "to wait for the process (default: 30)"                        \
    }

/* The process that the first argument means: its number, or a part of its program's name that no
 * other watched process has. */
enum cli_exit cli_control_process(const struct cli_call *call,
                                  const struct cli_control_values *values, int64_t *process_out);

const char *cli_control_folder(const struct cli_control_values *values);

/* In milliseconds. */
uint32_t cli_control_timeout(const struct cli_control_values *values);

/* Reports a failure: what the process does not do is no error of the command line. */
enum cli_exit cli_control_failed(const struct cli_call *call, enum tarn_status status,
                                 const struct tarn_error *error);

#endif
