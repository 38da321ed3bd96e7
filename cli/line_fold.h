/* SPDX-License-Identifier: MIT */
/*
 * Lines that are longer than the terminal, broken at blanks. What follows a break begins where the
 * last cell of a row of a table does, if there is room, else a little to the right of the line.
 *
 * A command that prints lines for people has `folds_lines`: on a terminal its output is buffered
 * and folded when it finishes. Output for programs (--json, --csv, ...) is left alone.
 */
#ifndef CLI_LINE_FOLD_H
#define CLI_LINE_FOLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Writes one line, without its newline, and a newline. Escape sequences of styles and all but the
 * first byte of a UTF-8 character need no column. */
void cli_line_fold_put(FILE *file, const char *line, size_t length, unsigned width);

/* Buffers stdout from now on. `width` 0: nothing is folded, nor without a temporary file. */
void cli_line_fold_begin(unsigned width);

/* Writes what was printed since then to the original stdout; a second call does nothing. */
void cli_line_fold_end(void);

#endif
