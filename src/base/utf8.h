/* SPDX-License-Identifier: MIT */
/* UTF-8. Lone surrogates count as valid, as in Python's pickles. */
#ifndef TN_BASE_UTF8_H
#define TN_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool tn_utf8_is_valid(const char *text, size_t length);

/* Bytes of the character that `text` begins with, `length` > 0; 0 when it begins with none. */
size_t tn_utf8_decode(const char *text, size_t length, uint32_t *code_out);

/* Whether a character shows as itself: no control, format, surrogate or private character, and no
 * blank but the space. Those can hide or reorder what is around them. Unassigned ones count as
 * shown. */
bool tn_utf8_is_shown(uint32_t code);

#endif
