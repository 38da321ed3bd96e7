/* SPDX-License-Identifier: MIT */
/*
 * -o of commands that print to stdout: what they print is kept aside, and becomes the file when
 * they are done. So the file appears whole or not at all, and a run that fails leaves what was
 * there. A check that fails (exit code 1) and an input that ends early (5) are results.
 */
#ifndef CLI_REDIRECT_H
#define CLI_REDIRECT_H

#include "command.h"

struct cli_redirect {
    const char *path; /* NULL: nothing is redirected */
    FILE *aside;
    int saved_file; /* the stdout of before */
};

/* From now on stdout is kept for `path`; NULL and "-" leave it alone. A file that exists needs
 * `force`. Says what fails, and returns an exit code; there is nothing to end then. */
enum cli_exit cli_redirect_begin(struct cli_redirect *redirect, const struct cli_command *command,
                                 const char *path, bool force);

/* Ends it after a command that ended with `code`. Returns the code to end with. */
enum cli_exit cli_redirect_end(struct cli_redirect *redirect, const struct cli_command *command,
                               enum cli_exit code);

#endif
