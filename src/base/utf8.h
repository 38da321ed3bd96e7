/* SPDX-License-Identifier: MIT */
/* Whether bytes are UTF-8. Lone surrogates count as valid, as in Python's pickles. */
#ifndef TN_BASE_UTF8_H
#define TN_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

bool tn_utf8_is_valid(const char *text, size_t length);

#endif
