/* SPDX-License-Identifier: MIT */
/* What the program's exit codes mean. They are a promise to scripts: never renumber. */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include "tarn/status.h"

enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_GATE = 1,          /* a check that was asked for failed */
    CLI_EXIT_USAGE = 2,         /* wrong command, option or value */
    CLI_EXIT_FORMAT = 3,        /* not a snapshot, or of a kind not supported */
    CLI_EXIT_UNSAFE = 4,        /* the file wants to run code */
    CLI_EXIT_TRUNCATED = 5,     /* input ends early; what could be read was printed */
    CLI_EXIT_IO = 6,            /* cannot read or write, or the output exists */
    CLI_EXIT_LIMIT = 7,         /* out of memory or a limit was hit */
    CLI_EXIT_INTERNAL = 70,     /* a bug, or a device that fails */
    CLI_EXIT_INTERRUPTED = 130, /* by SIGINT */
};

/* What a code means, for help and manual pages. */
struct cli_exit_row {
    enum cli_exit code;
    const char *text; /* one line, lower case, no full stop */
};

/* All codes in order; ends with a row without text. */
extern const struct cli_exit_row cli_exit_rows[];

/* The exit code for a status of the library. */
enum cli_exit cli_exit_from_status(enum tarn_status status);

#endif
