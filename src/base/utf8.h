/* SPDX-License-Identifier: MIT */
/* UTF-8. Lone surrogates count as valid, as in Python's pickles. */
#ifndef TN_BASE_UTF8_H
#define TN_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    TN_UTF8_MAX = 4 /* bytes of a character */
};

bool tn_utf8_is_valid(const char *text, size_t length);

enum {
    TN_UTF8_REPAIR_GROWTH = 3 /* times that a repaired text may be longer */
};

/* Copies `text`, with each invalid byte as the lone surrogate U+DC80 to U+DCFF, as Python's
 * surrogateescape reads it. Returns the size of the copy, for which `out` has room. */
size_t tn_utf8_repair(const char *text, size_t length, char *out);

/* Length of the first character of `text`, `length` > 0; 0 when it is invalid. */
size_t tn_utf8_decode(const char *text, size_t length, uint32_t *code_out);

/* Length of the longest prefix, at most `most` bytes, that does not split a character: for the
 * precision of "%.*s". Each byte of invalid UTF-8 counts as a character. */
int tn_utf8_fit(const char *text, size_t length, size_t most);

/* The same for a NUL-terminated text. */
static inline int tn_utf8_cut(const char *text, size_t most)
{
    return tn_utf8_fit(text, strlen(text), most);
}

/* Whether a character is visible: not a control, format, surrogate or private-use character, and
 * not a blank other than the space. Those can hide or reorder the text around them. Unassigned
 * characters count as visible. */
bool tn_utf8_is_printable(uint32_t code);

#endif
