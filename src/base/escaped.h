/* SPDX-License-Identifier: MIT */
/*
 * Escapes untrusted text from files, arguments or the system: invisible characters (controls,
 * direction marks, blanks other than the space; see tn_utf8_is_printable) and invalid UTF-8. Needs
 * no host memory. Also implements tarn/text.h.
 */
#ifndef TN_BASE_ESCAPED_H
#define TN_BASE_ESCAPED_H

#include "base/text_out.h"

enum tn_escape_format {
    TN_ESCAPED_PLAIN,  /* for terminals and text files: \x1b, \u202e */
    TN_ESCAPED_LINES,  /* the same, but newlines stay */
    TN_ESCAPED_XML,    /* the same inside XML and HTML */
    TN_ESCAPED_JSON,   /* inside a JSON string */
    TN_ESCAPED_PYTHON, /* as in repr, inside single quotes */
    TN_ESCAPED_PYTHON_DOUBLE
};

enum {
    TN_ESCAPED_MAX = 16
};

/* One escaped character, NUL-terminated. */
struct tn_escaped {
    char text[TN_ESCAPED_MAX];
    size_t length;
};

/* Escapes the first character of `text`, `length` > 0; returns its length in `text`.
 */
size_t tn_escaped_next(const char *text, size_t length, enum tn_escape_format format,
                       struct tn_escaped *escaped_out);

/* Number of leading bytes of `text` that are ASCII and need no escape. */
size_t tn_escaped_plain(const char *text, size_t length, enum tn_escape_format format);

/* Writes the whole text. */
void tn_text_put_escaped(struct tn_text_out *out, const char *text, size_t length,
                         enum tn_escape_format format);

/* Writes as much as fits into `size` bytes (at least TN_ESCAPED_MAX), followed by a NUL; no
 * character or escape is split. Returns how many bytes of `text` were consumed. */
size_t tn_escaped_copy(const char *text, size_t length, enum tn_escape_format format, char *escaped,
                       size_t size);

/* As Python's repr of a string: in single quotes, or in double quotes if the text has only single
 * quotes. */
void tn_text_put_python(struct tn_text_out *out, const char *text, size_t length);

#endif
