/* SPDX-License-Identifier: MIT */
/* Files of patterns for people: "word: rest" a line, blank lines and lines that begin with '#'
 * aside. */
#ifndef TN_ANALYSIS_PATTERN_FILE_H
#define TN_ANALYSIS_PATTERN_FILE_H

#include "base/attr.h"
#include "base/input.h"

enum {
    TN_PATTERN_FILE_SHOWN = 200, /* bytes of the file's name in messages */
    TN_PATTERN_LINES_MAX = 10000,
    TN_PATTERN_LINE_MAX = 4096
};

/* One line, without blanks around its parts. Borrowed until the next. */
struct tn_pattern_line {
    const char *file;
    uint64_t number;
    char text[TN_PATTERN_LINE_MAX + 1]; /* the word, NUL, the rest, NUL */
    const char *word;
    const char *rest;
};

/* Takes a line; anything but TARN_OK ends the reading. */
typedef enum tarn_status tn_pattern_line_take(void *context, const struct tn_pattern_line *line,
                                              struct tarn_error *error);

/* Reads all lines; `example` is a good one, for messages. TARN_ERR_INVALID_ARGUMENT for a line that
 * has no colon or nothing on one side of it, TARN_ERR_LIMIT for too many or too long ones. */
enum tarn_status tn_pattern_file_read(struct tn_input *input, const char *file, const char *example,
                                      tn_pattern_line_take *take, void *context,
                                      struct tarn_error *error) TN_MUST_CHECK;

#endif
