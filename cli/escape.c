/* SPDX-License-Identifier: MIT */
#include "escape.h"

#include "tarn/text.h"

#include <string.h>

enum {
    PIECE_BYTES = 1024,
    LINE_BYTES = 16384 /* enough for two paths and an error of the library */
};

struct cli_escaped cli_escaped(const char *text)
{
    struct cli_escaped escaped = {.text = ""};

    (void)tarn_text_escape(text, strlen(text), TARN_TEXT_PLAIN, escaped.text, sizeof escaped.text);
    return escaped;
}

void cli_put_escaped(FILE *file, const char *text)
{
    char piece[PIECE_BYTES];
    size_t length = strlen(text);

    while (length > 0) {
        const size_t taken = tarn_text_escape(text, length, TARN_TEXT_PLAIN, piece, sizeof piece);

        (void)fputs(piece, file);
        text += taken;
        length -= taken;
    }
}

void cli_put_line_escaped(FILE *file, const char *format, va_list args)
{
    static char line[LINE_BYTES];

    (void)vsnprintf(line, sizeof line, format, args);
    cli_put_escaped(file, line);
    (void)fputc('\n', file);
}
