/* SPDX-License-Identifier: MIT */
#include "alloc/config/config_parse.h"

#include "alloc/config/config_table.h"
#include "base/assertion.h"
#include "base/bits.h"
#include "base/decimal.h"
#include "base/errinfo.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIVISIONS_MAX ((uint64_t)1 << 31) /* above, no request below 1 TiB is affected */

struct reader {
    const char *text;
    size_t at;                    /* the next byte */
    struct tn_config_token token; /* the current one */
    struct tarn_config *config;
    struct tarn_error *error;
};

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_separator(char c)
{
    return c == ':' || c == ',' || c == '[' || c == ']';
}

static void reader_skip_blanks(struct reader *reader)
{
    while (is_blank(reader->text[reader->at])) {
        reader->at++;
    }
}

/* Makes the next token the current one. At the end it stays there. */
static void reader_next(struct reader *reader)
{
    struct tn_config_token *token = &reader->token;
    size_t length = 0;
    char c;

    reader_skip_blanks(reader);
    c = reader->text[reader->at];
    token->offset = (int64_t)reader->at;
    token->is_cut = false;
    if (c == '\0' || is_separator(c)) {
        token->kind = (enum tn_config_token_kind)c;
        token->word[length++] = c;
        reader->at += c != '\0';
    } else {
        token->kind = TN_CONFIG_TOKEN_WORD;
        for (; c != '\0' && !is_separator(c); c = reader->text[++reader->at]) {
            if (!is_blank(c) && length + 1 < sizeof token->word) {
                token->word[length++] = c;
            } else if (!is_blank(c)) {
                token->is_cut = true;
            }
        }
    }
    token->word[length] = '\0';
}

static void reader_init(struct reader *reader, const char *text, struct tarn_config *config,
                        struct tarn_error *error)
{
    *reader = (struct reader){.text = text, .config = config, .error = error};
    reader_next(reader);
}

struct token_text {
    char text[TN_CONFIG_WORD_MAX + 8];
};

/* A token for a message: quoted, shortened, unprintable bytes replaced. */
static struct token_text token_show(const struct tn_config_token *token)
{
    struct token_text out;

    if (token->kind == TN_CONFIG_TOKEN_END) {
        (void)snprintf(out.text, sizeof out.text, "the end");
        return out;
    }
    (void)snprintf(out.text, sizeof out.text, "\"%.40s%s\"", token->word,
                   strlen(token->word) > 40 ? "..." : "");
    for (char *c = out.text; *c != '\0'; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
    return out;
}

static enum tarn_status separator_fail(const struct reader *reader, const char *wanted,
                                       const char *where)
{
    return tn_fail_at(reader->error, TARN_ERR_CONFIG, reader->token.offset,
                      "expected %s %s at offset %" PRId64 ", found %s", wanted, where,
                      reader->token.offset, token_show(&reader->token).text);
}

/* "NAME: VALUE at offset N WHAT, allowed: RANGE". */
static enum tarn_status value_fail(const struct reader *reader, const struct tn_config_row *row,
                                   const char *what)
{
    const struct tn_config_token *token = &reader->token;
    char segment[40] = "";

    if (row->min_is_segment) {
        (void)snprintf(segment, sizeof segment, " (here %" PRIu64 ")",
                       reader->config->large_segment_size >> 20);
    }
    if (token->kind != TN_CONFIG_TOKEN_WORD) {
        return tn_fail_at(reader->error, TARN_ERR_CONFIG, token->offset,
                          "%s: expected a value at offset %" PRId64 ", found %s, allowed: %s%s",
                          row->option.name, token->offset, token_show(token).text,
                          row->option.range, segment);
    }
    return tn_fail_at(reader->error, TARN_ERR_CONFIG, token->offset,
                      "%s: %s at offset %" PRId64 " %s, allowed: %s%s", row->option.name,
                      token_show(token).text, token->offset, what, row->option.range, segment);
}

static const char *decimal_result_text(enum tn_decimal_result result)
{
    if (result == TN_DECIMAL_NEGATIVE) {
        return "is negative";
    }
    return result == TN_DECIMAL_RANGE ? "does not fit a number" : "is not a number";
}

/* Whether all of it is a whole number. */
static bool is_whole(const char *word)
{
    return word[strspn(word, "+-0123456789")] == '\0';
}

/* Reads the current token as a whole number; what follows its digits does not count. */
static enum tarn_status whole_read(const struct reader *reader, const struct tn_config_row *row,
                                   uint64_t *value_out)
{
    enum tn_decimal_result result = TN_DECIMAL_NONE;

    if (reader->token.kind == TN_CONFIG_TOKEN_WORD) {
        result = tn_whole_parse(reader->token.word, value_out);
    }
    if (result == TN_DECIMAL_OK && reader->token.is_cut && is_whole(reader->token.word)) {
        result = TN_DECIMAL_RANGE; /* digits were cut off */
    }
    return result ? value_fail(reader, row, decimal_result_text(result)) : TARN_OK;
}

static enum tarn_status mib_set(struct reader *reader, const struct tn_config_row *row,
                                void *field_out)
{
    const uint64_t min = row->min_is_segment ? reader->config->large_segment_size >> 20 : row->min;
    uint64_t mib = 0;
    const enum tarn_status st = whole_read(reader, row, &mib);

    if (st) {
        return st;
    }
    if (mib < min) {
        return value_fail(reader, row, "is too small");
    }
    mib = mib < row->max ? mib : row->max;
    *(uint64_t *)field_out = mib << 20;
    return TARN_OK;
}

static enum tarn_status count_set(struct reader *reader, const struct tn_config_row *row,
                                  void *field_out)
{
    uint64_t count = 0;
    const enum tarn_status st = whole_read(reader, row, &count);

    if (st) {
        return st;
    }
    if (!tn_is_pow2(count)) {
        return value_fail(reader, row, "is not a power of two");
    }
    /* A power of two is 1 or more, and no row asks for more than that. */
    if (tn_never(count < row->min) || count > row->max) {
        return value_fail(reader, row, "is too large");
    }
    *(uint32_t *)field_out = (uint32_t)count;
    return TARN_OK;
}

static enum tarn_status fraction_set(struct reader *reader, const struct tn_config_row *row,
                                     void *field_out)
{
    enum tn_decimal_result result = TN_DECIMAL_NONE;
    double value;

    if (reader->token.kind == TN_CONFIG_TOKEN_WORD) {
        result = tn_real_parse(reader->token.word, &value);
    }
    if (result) {
        return value_fail(reader, row, decimal_result_text(result));
    }
    const bool is_inside = row->is_open ? value > 0.0 && value < 1.0 : value >= 0.0 && value <= 1.0;
    if (!is_inside) { /* also for NaN */
        return value_fail(reader, row, "is out of range");
    }
    *(double *)field_out = value;
    return TARN_OK;
}

/* Which of two words the current token is. */
static enum tarn_status word_read(const struct reader *reader, const struct tn_config_row *row,
                                  const char *no, const char *yes, bool *is_yes_out)
{
    const struct tn_config_token *token = &reader->token;
    const bool is_word = token->kind == TN_CONFIG_TOKEN_WORD && !token->is_cut;
    const bool is_yes = is_word && strcmp(token->word, yes) == 0;

    if (!is_yes && !(is_word && strcmp(token->word, no) == 0)) {
        return value_fail(reader, row, "is not known");
    }
    *is_yes_out = is_yes;
    return TARN_OK;
}

static enum tarn_status backend_set(struct reader *reader, const struct tn_config_row *row,
                                    void *field_out)
{
    bool is_async = false;
    const enum tarn_status st = word_read(reader, row, "native", "cudaMallocAsync", &is_async);

    if (st == TARN_OK) {
        *(enum tarn_backend *)field_out = is_async ? TARN_BACKEND_ASYNC : TARN_BACKEND_NATIVE;
    }
    return st;
}

static enum tarn_status policy_set(struct reader *reader, const struct tn_config_row *row,
                                   void *field_out)
{
    bool is_compact = false;
    const enum tarn_status st = word_read(reader, row, "exact", "compact", &is_compact);

    if (st == TARN_OK) {
        *(enum tarn_policy *)field_out = is_compact ? TARN_POLICY_COMPACT : TARN_POLICY_EXACT;
    }
    return st;
}

static enum tarn_status rules_set(const struct reader *reader, const struct tn_config_row *row,
                                  void *field_out)
{
    bool is_newer = false;
    const enum tarn_status st = word_read(reader, row, "2.11", "2.14", &is_newer);

    if (st == TARN_OK) {
        *(enum tarn_rules_version *)field_out = is_newer ? TARN_RULES_2_14 : TARN_RULES_2_11;
    }
    return st;
}

/* A number of divisions; 0 only in a list. */
static enum tarn_status divisions_read(const struct reader *reader, const struct tn_config_row *row,
                                       bool is_in_list, uint32_t *divisions_out)
{
    uint64_t value = 0;
    const enum tarn_status st = whole_read(reader, row, &value);

    if (st) {
        return st;
    }
    if (!tn_is_pow2(value) && !(is_in_list && value == 0)) {
        return value_fail(reader, row,
                          is_in_list ? "is neither a power of two nor 0" : "is not a power of two");
    }
    if (value > DIVISIONS_MAX) {
        return value_fail(reader, row, "is more than 2147483648");
    }
    *divisions_out = (uint32_t)value;
    return TARN_OK;
}

/* Progress through a list of divisions. */
struct divisions_list {
    uint32_t *divisions;
    unsigned last;   /* interval of the last pair with a number */
    bool is_started; /* there was such a pair */
};

static void divisions_fill(const struct divisions_list *list, unsigned from, unsigned to,
                           uint32_t value)
{
    for (unsigned i = from; i < to; i++) {
        list->divisions[i] = value;
    }
}

/* "512:2" sets one interval, and all below it if it is the first pair; ">:4" sets all above the
 * last. */
static enum tarn_status divisions_pair_set(struct reader *reader, const struct tn_config_row *row,
                                           struct divisions_list *list)
{
    const bool is_rest =
        reader->token.kind == TN_CONFIG_TOKEN_WORD && strcmp(reader->token.word, ">") == 0;
    uint64_t mib = 1;
    uint32_t value;
    enum tarn_status st = is_rest ? TARN_OK : whole_read(reader, row, &mib);

    if (st == TARN_OK && !tn_is_pow2(mib)) {
        st = value_fail(reader, row, "is not a power of two");
    }
    if (st) {
        return st;
    }
    reader_next(reader);
    if (reader->token.kind != TN_CONFIG_TOKEN_COLON) {
        return separator_fail(reader, "\":\"", "in the list of roundup_power2_divisions");
    }
    reader_next(reader);
    st = divisions_read(reader, row, true, &value);
    if (st) {
        return st;
    }
    reader_next(reader);
    if (is_rest) {
        divisions_fill(list, list->last + 1, TARN_ROUNDUP_INTERVALS, value);
        return TARN_OK;
    }
    const unsigned log2 = tn_log2_floor(mib);
    list->last = log2 < TARN_ROUNDUP_INTERVALS ? log2 : TARN_ROUNDUP_INTERVALS - 1;
    divisions_fill(list, list->is_started ? list->last : 0, list->last + 1, value);
    list->is_started = true;
    return TARN_OK;
}

static enum tarn_status divisions_list_set(struct reader *reader, const struct tn_config_row *row,
                                           uint32_t *divisions_out)
{
    struct divisions_list list = {.divisions = divisions_out};

    reader_next(reader);
    while (reader->token.kind != TN_CONFIG_TOKEN_CLOSE) {
        const enum tarn_status st = divisions_pair_set(reader, row, &list);

        if (st) {
            return st;
        }
        if (reader->token.kind == TN_CONFIG_TOKEN_COMMA) {
            reader_next(reader);
        } else if (reader->token.kind != TN_CONFIG_TOKEN_CLOSE) {
            return separator_fail(reader, "\",\" or \"]\"",
                                  "in the list of roundup_power2_divisions");
        }
    }
    return TARN_OK;
}

static enum tarn_status divisions_set(struct reader *reader, const struct tn_config_row *row,
                                      void *field_out)
{
    uint32_t *const divisions = field_out;

    if (reader->token.kind == TN_CONFIG_TOKEN_OPEN) {
        return divisions_list_set(reader, row, divisions);
    }
    const enum tarn_status st = divisions_read(reader, row, false, &divisions[0]);
    for (unsigned i = 1; st == TARN_OK && i < TARN_ROUNDUP_INTERVALS; i++) {
        divisions[i] = divisions[0];
    }
    return st;
}

/* Stores the value that begins at the current token. Afterwards its last token is the current
 * one. */
static enum tarn_status value_set(struct reader *reader, const struct tn_config_row *row,
                                  struct tarn_config *config_out)
{
    void *const field = (char *)config_out + row->at;

    switch (row->option.kind) {
    case TARN_CONFIG_BOOL:
        return word_read(reader, row, "False", "True", field);
    case TARN_CONFIG_MIB:
        return mib_set(reader, row, field);
    case TARN_CONFIG_COUNT:
        return count_set(reader, row, field);
    case TARN_CONFIG_FRACTION:
        return fraction_set(reader, row, field);
    case TARN_CONFIG_DIVISIONS:
        return divisions_set(reader, row, field);
    case TARN_CONFIG_BACKEND:
        return backend_set(reader, row, field);
    case TARN_CONFIG_POLICY:
        return policy_set(reader, row, field);
    case TARN_CONFIG_RULES:
        return rules_set(reader, row, field);
    }
    return tn_fail(reader->error, TARN_ERR_INTERNAL, "option %s has no kind", row->option.name);
}

static enum tarn_status name_fail(const struct reader *reader)
{
    const struct tn_config_token *token = &reader->token;
    const char *meant = token->is_cut ? NULL : tn_config_name_suggest(token->word);

    if (token->kind != TN_CONFIG_TOKEN_WORD) {
        return tn_fail_at(reader->error, TARN_ERR_CONFIG, token->offset,
                          "expected the name of an option at offset %" PRId64 ", found %s",
                          token->offset, token_show(token).text);
    }
    return tn_fail_at(reader->error, TARN_ERR_CONFIG, token->offset,
                      "unknown option %s at offset %" PRId64 "%s%s%s", token_show(token).text,
                      token->offset, meant ? ", did you mean \"" : "", meant ? meant : "",
                      meant ? "\"?" : "");
}

/* One "name:value" and the comma after it. */
static enum tarn_status option_apply(struct reader *reader)
{
    struct tarn_config scratch; /* for what tn_config_apply_early has set already */
    const bool is_name = reader->token.kind == TN_CONFIG_TOKEN_WORD && !reader->token.is_cut;
    const struct tn_config_row *row = is_name ? tn_config_row_find(reader->token.word) : NULL;
    char where[80];
    enum tarn_status st;

    if (!row) {
        return name_fail(reader);
    }
    reader_next(reader);
    if (reader->token.kind != TN_CONFIG_TOKEN_COLON) {
        (void)snprintf(where, sizeof where, "after %s", row->option.name);
        return separator_fail(reader, "\":\"", where);
    }
    reader_next(reader);
    st = value_set(reader, row, row->is_early ? &scratch : reader->config);
    if (st) {
        return st;
    }
    if (row->given_at != 0) {
        *(bool *)((char *)reader->config + row->given_at) = true;
    }
    reader_next(reader);
    if (reader->token.kind != TN_CONFIG_TOKEN_COMMA && reader->token.kind != TN_CONFIG_TOKEN_END) {
        (void)snprintf(where, sizeof where, "after the value of %s", row->option.name);
        return separator_fail(reader, "\",\"", where);
    }
    reader_next(reader);
    return TARN_OK;
}

enum tarn_status tn_config_apply(const char *text, struct tarn_config *config_in_out,
                                 struct tarn_error *error)
{
    struct reader reader;
    enum tarn_status st = TARN_OK;

    reader_init(&reader, text, config_in_out, error);
    while (st == TARN_OK && reader.token.kind != TN_CONFIG_TOKEN_END) {
        st = option_apply(&reader);
    }
    return st;
}

/* Skips to the option after the next comma outside brackets. */
static void reader_skip_option(struct reader *reader)
{
    bool is_in_list = false;

    while (reader->token.kind != TN_CONFIG_TOKEN_END) {
        if (reader->token.kind == TN_CONFIG_TOKEN_COMMA && !is_in_list) {
            reader_next(reader);
            return;
        }
        if (reader->token.kind == TN_CONFIG_TOKEN_OPEN ||
            reader->token.kind == TN_CONFIG_TOKEN_CLOSE) {
            is_in_list = reader->token.kind == TN_CONFIG_TOKEN_OPEN;
        }
        reader_next(reader);
    }
}

void tn_config_apply_early(const char *text, struct tarn_config *config_in_out)
{
    struct reader reader;

    reader_init(&reader, text, config_in_out, NULL);
    while (reader.token.kind != TN_CONFIG_TOKEN_END) {
        const struct tn_config_row *row = reader.token.kind == TN_CONFIG_TOKEN_WORD
                                              ? tn_config_row_find(reader.token.word)
                                              : NULL;

        if (row && row->is_early) {
            reader_next(&reader);
            if (reader.token.kind == TN_CONFIG_TOKEN_COLON) {
                reader_next(&reader);
                (void)value_set(&reader, row, config_in_out);
            }
        }
        reader_skip_option(&reader);
    }
}
