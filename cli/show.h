/* SPDX-License-Identifier: MIT */
/*
 * Texts that are not the program's own (arguments, names of files, what a file says), as they are
 * shown: see tarn/text.h. Whatever goes to a terminal has been through here or through the library.
 */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <stdarg.h>
#include <stdio.h>

enum {
    CLI_SHOWN_MAX = 60 /* bytes of a text inside of a sentence */
};

struct cli_shown {
    char text[CLI_SHOWN_MAX + 1];
};

/* The beginning of a text, as much as a sentence has room for. */
struct cli_shown cli_shown(const char *text);

/* All of it. */
void cli_show(FILE *file, const char *text);

/* Prints a sentence with such texts in it, and ends the line. */
__attribute__((format(printf, 2, 0))) void cli_show_line(FILE *file, const char *format,
                                                         va_list args);

#endif
