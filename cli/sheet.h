/* SPDX-License-Identifier: MIT */
/*
 * A page of facts, as text whose lines are cut off where the terminal ends, else at 80 columns, or
 * as Markdown, whole. Texts are safe to print already.
 */
#ifndef CLI_SHEET_H
#define CLI_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cli_sheet {
    FILE *file;
    bool is_markdown;
    unsigned columns; /* of a line; 0: 80 */
};

/* "label: words", in Markdown a point of a list; "" as label: a heading. */
__attribute__((format(printf, 3, 4))) void
cli_sheet_fact(struct cli_sheet *sheet, const char *label, const char *format, ...);

/* One of several below a fact: an amount, and what it is of. */
void cli_sheet_row(struct cli_sheet *sheet, const char *amount, const char *name);

#endif
