/* SPDX-License-Identifier: MIT */
/*
 * Escapes untrusted text (arguments, file names, contents of files) for output: see tarn/text.h.
 * All such text that reaches a terminal passes through here or through the library.
 */
#ifndef CLI_ESCAPE_H
#define CLI_ESCAPE_H

#include <stdarg.h>
#include <stdio.h>

enum {
    CLI_ESCAPED_MAX = 60 /* bytes of a text within a sentence */
};

struct cli_escaped {
    char text[CLI_ESCAPED_MAX + 1];
};

/* The escaped beginning of a text, for use in a sentence. */
struct cli_escaped cli_escaped(const char *text);

/* Prints the whole text, escaped. */
void cli_put_escaped(FILE *file, const char *text);

/* Prints an escaped sentence and ends the line. */
__attribute__((format(printf, 2, 0))) void cli_put_line_escaped(FILE *file, const char *format,
                                                                va_list args);

#endif
