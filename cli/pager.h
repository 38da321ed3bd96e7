/* SPDX-License-Identifier: MIT */
/*
 * Standard output through another program: $PAGER, or `man` for manual pages. Only for terminals.
 * At most one at a time.
 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct cli_pager {
    pid_t child;    /* 0: none */
    int saved_file; /* standard output as it was */
};

/* Starts $PAGER, or less, which ends by itself when all fits on the screen. "cat" or an empty PAGER
 * mean none. Without one, output goes where it went. */
void cli_pager_start(struct cli_pager *pager);

/* Starts a program that is on the PATH, with these arguments (NULL at the end); false, and nothing
 * is changed, when it is not there or cannot be started. */
bool cli_pager_start_program(struct cli_pager *pager, const char *const *arguments);

/* Sends what is left and waits until the reader has seen it. Nothing to do without one. */
void cli_pager_end(struct cli_pager *pager);

/* From a signal's handler: lets the pager give the terminal back. */
void cli_pager_interrupted(void);

#endif
