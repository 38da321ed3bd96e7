/* SPDX-License-Identifier: MIT */
/*
 * Settings as text. A value is printed according to the kind of its row, a list of divisions in the
 * shortest of a few equivalent forms. tarn_config_format verifies its result by parsing it.
 */
#include "alloc/config/config_parse.h"
#include "alloc/config/config_table.h"
#include "base/assertion.h"
#include "base/attr.h"
#include "base/bits.h"
#include "base/decimal.h"
#include "base/errinfo.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Text in a fixed buffer. */
struct text {
    char *at;
    size_t size;
    size_t used; /* without the NUL; exceeds size if the text does not fit */
};

TN_PRINTF(2, 3)
static void text_add(struct text *text, const char *format, ...)
{
    const bool has_room = text->used < text->size;
    va_list args;
    int length;

    va_start(args, format);
    length = vsnprintf(has_room ? text->at + text->used : NULL,
                       has_room ? text->size - text->used : 0, format, args);
    va_end(args);
    text->used += tn_always(length >= 0) ? (size_t)length : 0; /* all texts are ASCII */
}

/* ---- divisions ---- */

enum {
    INTERVAL_LAST = TARN_ROUNDUP_INTERVALS - 1
};

/* First interval such that it and all up to the last are equal. */
static unsigned tail_start(const uint32_t *divisions)
{
    unsigned start = INTERVAL_LAST;

    while (start > 0 && divisions[start - 1] == divisions[INTERVAL_LAST]) {
        start--;
    }
    return start;
}

/* Last interval such that it and all down to the first are equal. */
static unsigned head_end(const uint32_t *divisions)
{
    unsigned end = 0;

    while (end < INTERVAL_LAST && divisions[end + 1] == divisions[0]) {
        end++;
    }
    return end;
}

/* One form of the list: the first pair is `first`, which also sets all intervals below; from `tail`
 * on, ">" sets the rest (TARN_ROUNDUP_INTERVALS = none). Intervals between them that are 0 need no
 * pair. */
static void list_add(struct text *text, const uint32_t *divisions, unsigned first, unsigned tail)
{
    text_add(text, "[%u:%" PRIu32, 1u << first, divisions[first]);
    for (unsigned i = first + 1; i < tail; i++) {
        if (divisions[i] != 0 || (tail < TARN_ROUNDUP_INTERVALS && i + 1 == tail)) {
            text_add(text, ",%u:%" PRIu32, 1u << i, divisions[i]);
        }
    }
    if (tail < TARN_ROUNDUP_INTERVALS) {
        text_add(text, ",>:%" PRIu32, divisions[tail]);
    }
    text_add(text, "]");
}

static void divisions_add(struct text *text, const uint32_t *divisions)
{
    const unsigned tail = tail_start(divisions);
    const unsigned head = head_end(divisions);
    /* If the head is 0, a pair for its first interval is as good as one for its last. */
    const unsigned shapes[4][2] = {{head, TARN_ROUNDUP_INTERVALS},
                                   {head, tail},
                                   {divisions[0] == 0 ? 0 : head, TARN_ROUNDUP_INTERVALS},
                                   {divisions[0] == 0 ? 0 : head, tail}};
    size_t best_length = SIZE_MAX;
    unsigned best = 0;

    if (tail == 0) { /* all equal */
        text_add(text, "%" PRIu32, divisions[0]);
        return;
    }
    if (tail == 1 && divisions[0] == 0) {
        text_add(text, "[>:%" PRIu32 "]", divisions[1]);
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        struct text shape = {NULL, 0, 0};

        list_add(&shape, divisions, shapes[i][0], shapes[i][1]);
        if (shape.used < best_length) {
            best_length = shape.used;
            best = i;
        }
    }
    list_add(text, divisions, shapes[best][0], shapes[best][1]);
}

/* ---- values ---- */

static const void *field_of(const struct tarn_config *config, const struct tn_config_row *row)
{
    return (const char *)config + row->at;
}

/* Adds the value of a row; false if no settings string can express it. */
static bool value_add(struct text *text, const struct tarn_config *config,
                      const struct tn_config_row *row)
{
    const void *field = field_of(config, row);
    uint64_t bytes;

    switch (row->option.kind) {
    case TARN_CONFIG_BOOL:
        text_add(text, "%s", *(const bool *)field ? "True" : "False");
        break;
    case TARN_CONFIG_COUNT:
        text_add(text, "%" PRIu32, *(const uint32_t *)field);
        break;
    case TARN_CONFIG_DIVISIONS:
        divisions_add(text, field);
        break;
    case TARN_CONFIG_FRACTION:
        text_add(text, "%s", tn_real_format(*(const double *)field).text);
        break;
    case TARN_CONFIG_BACKEND:
        text_add(text, "%s",
                 *(const enum tarn_backend *)field == TARN_BACKEND_ASYNC ? "cudaMallocAsync"
                                                                         : "native");
        break;
    case TARN_CONFIG_POLICY:
        text_add(text, "%s",
                 *(const enum tarn_policy *)field == TARN_POLICY_COMPACT ? "compact" : "exact");
        break;
    case TARN_CONFIG_RULES:
        text_add(text, "%s",
                 *(const enum tarn_rules_version *)field == TARN_RULES_2_14 ? "2.14" : "2.11");
        break;
    case TARN_CONFIG_MIB:
        bytes = *(const uint64_t *)field;
        if (bytes == TARN_SIZE_UNLIMITED) {
            text_add(text, "unlimited");
        } else if (bytes % ((uint64_t)1 << 20) == 0) {
            text_add(text, "%" PRIu64, bytes >> 20);
        } else {
            text_add(text, "%" PRIu64 " bytes", bytes);
            return false;
        }
        break;
    }
    return true;
}

/* The defaults to compare these settings with: max_non_split_rounding follows
 * large_segment_size. */
static void defaults_of(const struct tarn_config *config, struct tarn_config *defaults_out)
{
    tarn_config_init(defaults_out);
    defaults_out->max_non_split_rounding = config->large_segment_size;
}

static void value_describe(const struct tarn_config *config, const struct tarn_config *defaults,
                           const struct tn_config_row *row, struct tarn_config_value *value_out)
{
    char usual[TARN_CONFIG_VALUE_MAX];
    struct text text = {value_out->text, sizeof value_out->text, 0};
    struct text usual_text = {usual, sizeof usual, 0};

    value_out->has_spelling = value_add(&text, config, row);
    (void)value_add(&usual_text, defaults, row);
    value_out->is_default = strcmp(value_out->text, usual) == 0;
    if (row->given_at != 0 && *(const bool *)((const char *)config + row->given_at)) {
        value_out->is_default = false;
    }
    if (!value_out->is_default && strcmp(value_out->text, "unlimited") == 0) {
        value_out->has_spelling = false;
    }
}

enum tarn_status tarn_config_option_value(const struct tarn_config *config, size_t index,
                                          struct tarn_config_value *value_out)
{
    const struct tn_config_row *row = tn_config_row_get(index);
    struct tarn_config defaults;
    struct tarn_config known;

    if (!row) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st = tn_config_read(config, &known, NULL);

    if (st) {
        return st;
    }
    defaults_of(&known, &defaults);
    value_describe(&known, &defaults, row, value_out);
    return TARN_OK;
}

/* ---- settings ---- */

/* Adds "name:value" of every option that is not at its default. */
static enum tarn_status options_add(struct text *text, const struct tarn_config *config,
                                    struct tarn_error *error)
{
    const struct tn_config_row *row;
    struct tarn_config defaults;

    defaults_of(config, &defaults);
    for (size_t i = 0; (row = tn_config_row_get(i)); i++) {
        struct tarn_config_value value;

        value_describe(config, &defaults, row, &value);
        if (value.is_default) {
            continue;
        }
        if (!value.has_spelling) {
            return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                           "%s: no settings string gives the value %s", row->option.name,
                           value.text);
        }
        text_add(text, "%s%s:%s", text->used > 0 ? "," : "", row->option.name, value.text);
    }
    return TARN_OK;
}

/* Whether the parser accepts the text: finds fields that are out of range. */
static enum tarn_status text_prove(const char *text, struct tarn_error *error)
{
    struct tarn_config back;
    struct tarn_error why;

    if (tarn_config_parse(text, &back, &why) == TARN_OK) {
        return TARN_OK;
    }
    return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                   "no settings string gives these settings: %.*s",
                   tn_utf8_cut(why.text, TARN_ERROR_TEXT_MAX - 64), why.text);
}

enum tarn_status tarn_config_format(const struct tarn_config *config, char *buffer, size_t size,
                                    struct tarn_error *error)
{
    char storage[TARN_CONFIG_TEXT_MAX] = "";
    struct text text = {storage, sizeof storage, 0};
    struct tarn_config known;
    enum tarn_status st = tn_config_read(config, &known, error);

    st = st ? st : options_add(&text, &known, error);
    tn_assert(text.used < sizeof storage); /* with every option at its longest */
    st = st ? st : text_prove(storage, error);
    if (st == TARN_OK && text.used >= size) {
        st = tn_fail(error, TARN_ERR_LIMIT, "settings need %zu bytes, the buffer has %zu",
                     text.used + 1, size);
    }
    if (size > 0) {
        buffer[0] = '\0';
        if (st == TARN_OK) {
            memcpy(buffer, storage, text.used + 1);
        }
    }
    return st;
}
