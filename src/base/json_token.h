/* SPDX-License-Identifier: MIT */
/* Strings and numbers of JSON, for the readers of it. Strict as RFC 8259, but for half surrogates
 * (\ud800), which Python writes for itself. */
#ifndef TN_BASE_JSON_TOKEN_H
#define TN_BASE_JSON_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TN_JSON_NUMBER_MAX = 63 /* characters of a number or word */
};

/* Whether the text is a number of JSON; *whole_out: without a point or an exponent. */
bool tn_json_number_is_formed(const char *text, bool *whole_out);

/* Whether a number or word may have that character. */
bool tn_json_token_has(char c);

/* What stands between the quotes, `length` bytes, without its escapes, which fits into as many
 * bytes. NULL, or what is wrong. */
const char *tn_json_unescape(const char *text, size_t length, char *out, size_t *size_out);

#endif
