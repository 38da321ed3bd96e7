/* SPDX-License-Identifier: MIT */
/*
 * Text from outside, of files, arguments or the system, written so that it can do no harm:
 * characters that do not show (controls, orders to turn the direction of writing, blanks other than
 * the space; see tn_utf8_is_printable) and bytes that are not UTF-8 come out as escapes. Needs no
 * host memory. Implements tarn/text.h, too.
 */
#ifndef TN_BASE_ESCAPED_H
#define TN_BASE_ESCAPED_H

#include "base/text_out.h"

enum tn_escape_format {
    TN_ESCAPED_PLAIN,  /* for terminals and text files: \x1b, \u202e */
    TN_ESCAPED_LINES,  /* the same, but line ends stay */
    TN_ESCAPED_XML,    /* the same inside XML and HTML */
    TN_ESCAPED_JSON,   /* inside a JSON string */
    TN_ESCAPED_PYTHON, /* as repr writes it, inside of single quotes */
    TN_ESCAPED_PYTHON_DOUBLE
};

enum {
    TN_ESCAPED_MAX = 16
};

/* One character as it is written, NUL-terminated. */
struct tn_escaped {
    char text[TN_ESCAPED_MAX];
    size_t length;
};

/* The character that `text` begins with, `length` > 0; returns how many bytes of `text` it takes.
 */
size_t tn_escaped_next(const char *text, size_t length, enum tn_escape_format format,
                       struct tn_escaped *shown_out);

/* How many bytes at the beginning of `text` are ASCII that is written as it is. */
size_t tn_escaped_plain(const char *text, size_t length, enum tn_escape_format format);

/* All of it. */
void tn_text_put_escaped(struct tn_text_out *out, const char *text, size_t length,
                         enum tn_escape_format format);

/* As much of it as goes into `size` bytes, at least TN_ESCAPED_MAX, with a NUL behind it; no
 * character and no escape is cut. Returns how many bytes of `text` were taken. */
size_t tn_escaped_copy(const char *text, size_t length, enum tn_escape_format format, char *shown,
                       size_t size);

/* As Python's repr of a string: in single quotes, in double ones when it has only single ones. */
void tn_text_put_python(struct tn_text_out *out, const char *text, size_t length);

#endif
