/* SPDX-License-Identifier: MIT */
#include "line_fold.h"

#include <stdlib.h>
#include <unistd.h>

enum {
    INDENT = 4,
    CELL_ROOM = 24 /* columns that the last cell of a row needs, to be continued below itself */
};

/* Bytes of the character or escape sequence there; `*columns` grows by what it needs. */
static size_t piece_size(const char *text, size_t length, unsigned *columns)
{
    size_t size = 1;

    if (*text == '\033' && length > 1 && text[1] == '[') {
        for (size = 2; size < length && (text[size] < '@' || text[size] > '~');) {
            size++;
        }
        return size < length ? size + 1 : length;
    }
    while (size < length && ((unsigned char)text[size] & 0xC0U) == 0x80) {
        size++;
    }
    (*columns)++;
    return size;
}

/* Characters of the longest word from there on; words also end with a comma. */
static unsigned longest_word(const char *text, size_t length)
{
    unsigned longest = 0;
    unsigned columns = 0;

    for (size_t at = 0; at < length;) {
        const char byte = text[at];

        at += piece_size(text + at, length - at, &columns);
        if (byte != ' ' && columns > longest) {
            longest = columns;
        }
        if (byte == ' ' || byte == ',' || byte == ';') {
            columns = 0;
        }
    }
    return longest;
}

/* Where the last cell begins, if its words fit there: after two blanks, not those at the beginning;
 * else where the text does, and a little more. */
static unsigned indent_of(const char *line, size_t length, unsigned width)
{
    unsigned leading = 0;

    while (leading < length && line[leading] == ' ') {
        leading++;
    }
    unsigned column = leading;
    unsigned blanks = 0;
    unsigned cell = 0;
    size_t cell_at = 0;

    for (size_t at = leading; at < length && column + CELL_ROOM <= width;) {
        const bool is_blank = line[at] == ' ';

        if (!is_blank && blanks >= 2) {
            cell = column;
            cell_at = at;
        }
        blanks = is_blank ? blanks + 1 : 0;
        at += piece_size(line + at, length - at, &column);
    }
    if (cell > 0 && cell + longest_word(line + cell_at, length - cell_at) <= width) {
        return cell;
    }
    return leading + INDENT < width / 2 ? leading + INDENT : INDENT;
}

/* How many bytes fit, the blank or comma at their end included; all if the rest does. */
static size_t part_size(const char *line, size_t length, unsigned room)
{
    unsigned column = 0;
    size_t at = 0;
    size_t blank = 0;
    size_t comma = 0;
    bool has_text = false;

    while (at < length) {
        const size_t begin = at;
        const bool is_blank = line[at] == ' ';

        if (is_blank && has_text && column <= room) {
            blank = at + 1;
        }
        at += piece_size(line + at, length - at, &column);
        if (column > room && !is_blank) {
            const size_t other = comma > 0 ? comma : begin;

            return blank > 0 ? blank : other;
        }
        if (line[begin] == ',' || line[begin] == ';') {
            comma = at;
        }
        has_text = has_text || !is_blank;
    }
    return length;
}

static size_t without_blanks(const char *text, size_t length)
{
    while (length > 0 && text[length - 1] == ' ') {
        length--;
    }
    return length;
}

void cli_line_fold_put(FILE *file, const char *line, size_t length, unsigned width)
{
    const unsigned indent = indent_of(line, length, width);
    size_t size = part_size(line, length, width);

    (void)fwrite(line, 1, size < length ? without_blanks(line, size) : size, file);
    while (size < length) {
        line += size;
        length -= size;
        while (length > 0 && *line == ' ') {
            line++;
            length--;
        }
        size = part_size(line, length, width - indent);
        size = size > 0 ? size : length;
        if (length > 0) {
            (void)fprintf(file, "\n%*s", (int)indent, "");
            (void)fwrite(line, 1, size < length ? without_blanks(line, size) : size, file);
        }
    }
    (void)fputc('\n', file);
}

/* ---- standard output ---- */

static struct {
    FILE *aside;    /* NULL: nothing is folded */
    int saved_file; /* the original stdout */
    unsigned width;
} output;

void cli_line_fold_begin(unsigned width)
{
    output.width = width;
    output.aside = width > 0 ? tmpfile() : NULL;
    if (!output.aside) {
        return;
    }
    (void)fflush(stdout);
    output.saved_file = dup(STDOUT_FILENO);
    if (output.saved_file < 0 || dup2(fileno(output.aside), STDOUT_FILENO) < 0) {
        (void)fclose(output.aside);
        output.aside = NULL;
    }
}

void cli_line_fold_end(void)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t length;

    if (!output.aside) {
        return;
    }
    (void)fflush(stdout);
    (void)dup2(output.saved_file, STDOUT_FILENO);
    (void)close(output.saved_file);
    rewind(output.aside);
    while ((length = getline(&line, &room, output.aside)) > 0) {
        const bool is_whole = line[length - 1] == '\n';

        cli_line_fold_put(stdout, line, (size_t)(length - is_whole), output.width);
    }
    (void)fflush(stdout); /* before what follows on stderr */
    free(line);
    (void)fclose(output.aside);
    output.aside = NULL;
}
