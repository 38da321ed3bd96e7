/* SPDX-License-Identifier: MIT */
/* JSON strings and numbers, for the JSON readers. Strict RFC 8259, except that lone surrogates
 * (\ud800), which Python writes, are allowed. */
#ifndef TN_BASE_JSON_TOKEN_H
#define TN_BASE_JSON_TOKEN_H

#include "base/input.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    TN_JSON_NUMBER_MAX = 63 /* characters of a number or word */
};

static inline bool tn_json_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Skips white space up to a character, which is then in the window; fails at the end. */
static inline enum tarn_status tn_json_skip_blanks(struct tn_input *input, struct tarn_error *error)
{
    for (;; input->at++) {
        const enum tarn_status status = tn_input_need(input, 1, error);

        if (status || !tn_json_is_blank((char)*input->at)) {
            return status;
        }
    }
}

/* Whether the text is a JSON number; *whole_out: without a fraction or an exponent. */
bool tn_json_number_is_formed(const char *text, bool *whole_out);

/* Whether numbers or words can contain that character. */
bool tn_json_token_has(char c);

/* Decodes the `length` bytes between the quotes; the result is at most as long. Returns NULL, or
 * what is wrong. */
const char *tn_json_unescape(const char *text, size_t length, char *out, size_t *size_out);

#endif
