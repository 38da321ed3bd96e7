/* SPDX-License-Identifier: MIT */
/* JSON strings and numbers, for the JSON readers. Strict RFC 8259, except that lone surrogates
 * (\ud800), which Python writes, are allowed. */
#ifndef TN_BASE_JSON_TOKEN_H
#define TN_BASE_JSON_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

enum {
    TN_JSON_NUMBER_MAX = 63 /* characters of a number or word */
};

/* Whether the text is a JSON number; *whole_out: without a fraction or an exponent. */
bool tn_json_number_is_formed(const char *text, bool *whole_out);

/* Whether numbers or words can contain that character. */
bool tn_json_token_has(char c);

/* Decodes the `length` bytes between the quotes; the result is at most as long. Returns NULL, or
 * what is wrong. */
const char *tn_json_unescape(const char *text, size_t length, char *out, size_t *size_out);

#endif
