/* SPDX-License-Identifier: MIT */
/*
 * Reads a settings string: a tokeniser that allocates nothing, and a setter for each kind of
 * option. Which options there are, and their bounds, is config_table.c's.
 */
#ifndef TN_ALLOC_CONFIG_CONFIG_PARSE_H
#define TN_ALLOC_CONFIG_CONFIG_PARSE_H

#include "tarn/config.h"

enum {
    TN_CONFIG_WORD_MAX = 80 /* more than any known word, or number that fits, with its NUL */
};

enum tn_config_token_kind {
    TN_CONFIG_TOKEN_END = '\0',
    TN_CONFIG_TOKEN_WORD = 'w',
    TN_CONFIG_TOKEN_COLON = ':',
    TN_CONFIG_TOKEN_COMMA = ',',
    TN_CONFIG_TOKEN_OPEN = '[',
    TN_CONFIG_TOKEN_CLOSE = ']'
};

struct tn_config_token {
    enum tn_config_token_kind kind;
    int64_t offset;                /* of its first byte in the text */
    char word[TN_CONFIG_WORD_MAX]; /* of every kind, for messages; blanks dropped, cut off */
    bool is_cut;                   /* the word was longer: it is no name */
};

/* Sets large_segment_size if the text has a good value for it, and reports nothing: other options'
 * bounds depend on it wherever it stands. */
void tn_config_apply_early(const char *text, struct tarn_config *config_in_out);

/* Applies all options in their order, except that large_segment_size is only checked. On failure
 * the options before the wrong one are set. */
enum tarn_status tn_config_apply(const char *text, struct tarn_config *config_in_out,
                                 struct tarn_error *error) TARN_MUST_CHECK;

#endif
