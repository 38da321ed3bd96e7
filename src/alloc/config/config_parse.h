/* SPDX-License-Identifier: MIT */
/*
 * Reads a settings string: a tokeniser that allocates nothing, and a setter for each kind of
 * option. The options and their bounds are in config_table.c.
 */
#ifndef TN_ALLOC_CONFIG_CONFIG_PARSE_H
#define TN_ALLOC_CONFIG_CONFIG_PARSE_H

#include "tarn/config.h"

enum {
    TN_CONFIG_WORD_MAX = 80 /* longer than any name or any number that fits, with its NUL */
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
    char word[TN_CONFIG_WORD_MAX]; /* of any kind, for messages; without blanks, truncated */
    bool is_cut;                   /* the word was longer: it cannot be a name */
};

/* Sets large_segment_size if the text has a valid value for it; reports no errors. Called before
 * tn_config_apply, because other options' bounds depend on it, wherever in the text it comes. */
void tn_config_apply_early(const char *text, struct tarn_config *config_in_out);

/* Applies all options in order; large_segment_size is only checked. On failure the options before
 * the invalid one are set. */
enum tarn_status tn_config_apply(const char *text, struct tarn_config *config_in_out,
                                 struct tarn_error *error) TARN_MUST_CHECK;

/* Complete settings from those of a caller, who may know fewer fields or more; NULL: the defaults.
 * TARN_ERR_INVALID_ARGUMENT for a size that was never set. */
enum tarn_status tn_config_read(const struct tarn_config *given, struct tarn_config *config_out,
                                struct tarn_error *error) TARN_MUST_CHECK;

/* The way back, to a caller's struct of `size` bytes. */
enum tarn_status tn_config_write(const struct tarn_config *config, struct tarn_config *config_out,
                                 size_t size, struct tarn_error *error);

#endif
