/* SPDX-License-Identifier: MIT */
/*
 * -o of commands that print to stdout: their output is buffered and written to the file when they
 * finish. So the file appears whole or not at all, and a failed run leaves an existing file alone.
 * A failed check (exit code 1) and truncated input (5) count as results.
 */
#ifndef CLI_REDIRECT_H
#define CLI_REDIRECT_H

#include "command.h"

struct cli_redirect {
    const char *path; /* NULL: nothing is redirected */
    FILE *aside;
    int saved_file; /* the original stdout */
};

/* Starts buffering stdout for `path`; NULL and "-" do nothing. Replacing a file needs `force`. On
 * failure reports it and returns an exit code; do not end the redirection then. */
enum cli_exit cli_redirect_begin(struct cli_redirect *redirect, const struct cli_command *command,
                                 const char *path, bool force);

/* Ends it after a command that returned `code`. Returns the final exit code. */
enum cli_exit cli_redirect_end(struct cli_redirect *redirect, const struct cli_command *command,
                               enum cli_exit code);

#endif
