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

/* Bytes of the character that `text` begins with, `length` > 0; 0 when it begins with none. */
size_t tn_utf8_decode(const char *text, size_t length, uint32_t *code_out);

/* How many bytes of a text, `most` at most, do not end within a character: for the precision of
 * "%.*s". Bytes that are no UTF-8 are characters of their own. */
int tn_utf8_fit(const char *text, size_t length, size_t most);

/* The same for a text that ends with NUL. */
static inline int tn_utf8_cut(const char *text, size_t most)
{
    return tn_utf8_fit(text, strlen(text), most);
}

/* Whether a character shows as itself: no control, format, surrogate or private character, and no
 * blank but the space. Those can hide or reorder what is around them. Unassigned ones count as
 * shown. */
bool tn_utf8_is_printable(uint32_t code);

#endif
