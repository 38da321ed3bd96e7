/* SPDX-License-Identifier: MIT */
#include "show.h"

#include "tarn/text.h"

#include <string.h>

enum {
    PIECE_BYTES = 1024,
    LINE_BYTES = 16384 /* enough for two paths and an error of the library */
};

struct cli_shown cli_shown(const char *text)
{
    struct cli_shown shown = {.text = ""};

    (void)tarn_text_escape(text, strlen(text), TARN_TEXT_PLAIN, shown.text, sizeof shown.text);
    return shown;
}

void cli_show(FILE *file, const char *text)
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

void cli_show_line(FILE *file, const char *format, va_list args)
{
    static char line[LINE_BYTES];

    (void)vsnprintf(line, sizeof line, format, args);
    cli_show(file, line);
    (void)fputc('\n', file);
}
