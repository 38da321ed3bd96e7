/* SPDX-License-Identifier: MIT */
#include "analysis/pattern_file.h"

#include "base/errinfo.h"
#include "base/input_line.h"
#include "base/utf8.h"

#include <string.h>

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without blanks at both ends. */
static void trim(const char **text, size_t *length)
{
    while (*length > 0 && is_blank((*text)[0])) {
        (*text)++;
        (*length)--;
    }
    while (*length > 0 && is_blank((*text)[*length - 1])) {
        (*length)--;
    }
}

/* Cuts the line in two; false when it is none of the kind. */
static bool line_cut(struct tn_pattern_line *line, const char *text, size_t length)
{
    const char *colon = memchr(text, ':', length);
    size_t word_length = colon ? (size_t)(colon - text) : 0;
    size_t rest_length = colon ? length - word_length - 1 : 0;
    const char *rest = text + word_length + 1;

    if (memchr(text, '\0', length)) {
        return false;
    }
    trim(&text, &word_length);
    if (rest_length > 0) {
        trim(&rest, &rest_length);
    }
    if (word_length == 0 || rest_length == 0) {
        return false;
    }
    memcpy(line->text, text, word_length);
    line->text[word_length] = '\0';
    memcpy(line->text + word_length + 1, rest, rest_length);
    line->text[word_length + 1 + rest_length] = '\0';
    line->word = line->text;
    line->rest = line->text + word_length + 1;
    return true;
}

static enum tarn_status line_read(struct tn_pattern_line *line, const char *text, size_t length,
                                  const char *example, struct tarn_error *error)
{
    line->number++;
    line->word = NULL;
    trim(&text, &length);
    if (length == 0 || text[0] == '#' || line_cut(line, text, length)) {
        return TARN_OK;
    }
    return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                   "%.*s, line %llu: not of the form \"word: pattern\"; write such as \"%s\"",
                   tn_utf8_cut(line->file, TN_PATTERN_FILE_SHOWN), line->file,
                   (unsigned long long)line->number, example);
}

enum tarn_status tn_pattern_file_read(struct tn_input *input, const char *file, const char *example,
                                      tn_pattern_line_take *take, void *context,
                                      struct tarn_error *error)
{
    struct tn_pattern_line line = {.file = file};
    uint64_t taken = 0;

    for (;;) {
        const char *text;
        size_t length;
        enum tarn_status status = tn_input_line(input, TN_PATTERN_LINE_MAX, &text, &length, error);

        if (status == TARN_ERR_NOT_FOUND) {
            return TARN_OK;
        }
        if (status == TARN_OK) {
            status = line_read(&line, text, length, example, error);
        }
        if (status == TARN_OK && line.word) {
            status = ++taken > TN_PATTERN_LINES_MAX
                         ? tn_fail(error, TARN_ERR_LIMIT, "%.*s, line %llu: more than %d lines",
                                   tn_utf8_cut(file, TN_PATTERN_FILE_SHOWN), file,
                                   (unsigned long long)line.number, TN_PATTERN_LINES_MAX)
                         : take(context, &line, error);
        }
        if (status) {
            return status;
        }
    }
}
