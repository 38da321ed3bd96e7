/* SPDX-License-Identifier: MIT */
/* The program's exit codes. Scripts rely on them: never renumber. */
#ifndef CLI_EXIT_CODE_H
#define CLI_EXIT_CODE_H

#include "tarn/status.h"

enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_GATE = 1,          /* a requested check failed */
    CLI_EXIT_USAGE = 2,         /* invalid command, option or value */
    CLI_EXIT_FORMAT = 3,        /* not a snapshot, or an unsupported kind */
    CLI_EXIT_UNSAFE = 4,        /* the file tries to run code */
    CLI_EXIT_TRUNCATED = 5,     /* input ends early; the readable part was used */
    CLI_EXIT_IO = 6,            /* cannot read or write, or the output exists */
    CLI_EXIT_LIMIT = 7,         /* out of memory or a limit was exceeded */
    CLI_EXIT_INTERNAL = 70,     /* a bug, or a device failure */
    CLI_EXIT_NOT_STARTED = 126, /* `tarn run`: the program cannot be started */
    CLI_EXIT_NOT_FOUND = 127,   /* ... there is no such program */
    CLI_EXIT_INTERRUPTED = 130, /* by SIGINT */
};

/* A code's meaning, for help and man pages. */
struct cli_exit_row {
    enum cli_exit code;
    const char *text; /* one line, lower case, no full stop */
};

/* All codes in order; ends with a row without a text. */
extern const struct cli_exit_row cli_exit_rows[];

/* The exit code for a status of the library. */
enum cli_exit cli_exit_from_status(enum tarn_status status);

#endif
