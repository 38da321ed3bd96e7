/* SPDX-License-Identifier: MIT */
/*
 * Pipes standard output through another program: $PAGER, or `man` for man pages. Only for
 * terminals, at most one at a time.
 */
#ifndef CLI_PAGER_H
#define CLI_PAGER_H

#include <stdbool.h>
#include <sys/types.h>

struct cli_pager {
    pid_t child;    /* 0: none */
    int saved_file; /* the original standard output */
};

/* Starts $PAGER, or less, which exits when the text fits on the screen. "cat" or an empty PAGER
 * means no pager; standard output is then unchanged. */
void cli_pager_start(struct cli_pager *pager);

/* Starts a program from the PATH with these arguments (NULL at the end); false, changing nothing,
 * if it does not exist or cannot be started. */
bool cli_pager_start_program(struct cli_pager *pager, const char *const *arguments);

/* Flushes the output and waits for the pager to exit. Does nothing without a pager. */
void cli_pager_end(struct cli_pager *pager);

/* From a signal handler: lets the pager restore the terminal. */
void cli_pager_interrupted(void);

#endif
