/* SPDX-License-Identifier: MIT */
#include "sheet.h"

#include <stdarg.h>
#include <string.h>

enum {
    COLUMNS = 80,
    LINE_MAX_BYTES = 4096,
    AMOUNT_WIDTH = 22
};

/* The bytes of a line that fit: a character is its first byte with all that continue it. */
static size_t bytes_that_fit(const char *line, size_t columns)
{
    size_t at = 0;

    for (size_t column = 0; line[at] && column < columns; column++) {
        at++;
        while (((unsigned char)line[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return at;
}

static void line_put(const struct cli_sheet *sheet, const char *line)
{
    const size_t columns = sheet->columns > 0 ? sheet->columns : COLUMNS;
    const bool fits = sheet->is_markdown || bytes_that_fit(line, columns) == strlen(line);

    if (fits) {
        (void)fprintf(sheet->file, "%s\n", line);
    } else {
        (void)fprintf(sheet->file, "%.*s...\n", (int)bytes_that_fit(line, columns - 3), line);
    }
}

/* In Markdown, what would be markup: names of frames are "<module>", and anybody's. */
static void markdown_escape(const char *text, char *out, size_t size)
{
    size_t used = 0;

    for (; *text && used + 3 < size; text++) {
        if (strchr("\\`*_[]<>|#!", *text)) {
            out[used++] = '\\';
        }
        out[used++] = *text;
    }
    out[used] = '\0';
}

void cli_sheet_fact(struct cli_sheet *sheet, const char *label, const char *format, ...)
{
    char words[LINE_MAX_BYTES];
    char plain[2 * LINE_MAX_BYTES];
    char line[2 * LINE_MAX_BYTES + 64];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(words, sizeof words, format, args);
    va_end(args);
    markdown_escape(words, plain, sizeof plain);
    if (!label[0]) {
        (void)snprintf(line, sizeof line, sheet->is_markdown ? "### %s\n" : "%s",
                       sheet->is_markdown ? plain : words);
    } else {
        (void)snprintf(line, sizeof line, sheet->is_markdown ? "- **%s**: %s" : "%s: %s", label,
                       sheet->is_markdown ? plain : words);
    }
    line_put(sheet, line);
}

void cli_sheet_row(struct cli_sheet *sheet, const char *amount, const char *name)
{
    char plain[2 * LINE_MAX_BYTES];
    char line[2 * LINE_MAX_BYTES + 64];

    if (sheet->is_markdown) {
        markdown_escape(name, plain, sizeof plain);
        (void)snprintf(line, sizeof line, "  - %s: %s", amount, plain);
    } else {
        (void)snprintf(line, sizeof line, "  %-*s  %s", AMOUNT_WIDTH, amount, name);
    }
    line_put(sheet, line);
}
