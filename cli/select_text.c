/* SPDX-License-Identifier: MIT */
#include "select_text.h"

#include "size_read.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reads a value; *end_out is its end. */
typedef bool read_value(const char *text, uint64_t *value_out, const char **end_out);

static bool read_number(const char *text, uint64_t *value_out, const char **end_out)
{
    char *end;

    if (*text < '0' || *text > '9') {
        return false;
    }
    errno = 0;
    const unsigned long long value = strtoull(text, &end, 10);

    *value_out = value;
    *end_out = end;
    return errno == 0;
}

/* Digits with at most one point that does not begin ".."; the program's locale is C. */
static size_t real_length(const char *text)
{
    size_t length = strspn(text, "0123456789");

    if (length > 0 && text[length] == '.' && text[length + 1] != '.') {
        length += 1 + strspn(text + length + 1, "0123456789");
    }
    return length;
}

/* Microseconds. */
static bool read_time(const char *text, uint64_t *value_out, const char **end_out)
{
    static const struct {
        const char *name;
        double us;
    } units[] = {{"us", 1}, {"ms", 1e3}, {"s", 1e6}};
    char digits[64];
    const size_t length = real_length(text);
    double us = 1e6;

    if (length == 0 || length >= sizeof digits) {
        return false;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    text += length;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strncmp(text, units[i].name, strlen(units[i].name)) == 0) {
            us = units[i].us;
            text += strlen(units[i].name);
            break;
        }
    }
    us = round(strtod(digits, NULL) * us);
    if (us >= 9e18) {
        return false;
    }
    *value_out = (uint64_t)us;
    *end_out = text;
    return true;
}

static bool read_span(const char *text, read_value *read, struct tarn_span *span_out)
{
    struct tarn_span span = {.is_given = true, .last = UINT64_MAX};
    const bool has_first = strncmp(text, "..", 2) != 0;

    if (has_first && !read(text, &span.first, &text)) {
        return false;
    }
    if (*text == '\0') {
        span.last = span.first;
    } else if (strncmp(text, "..", 2) != 0) {
        return false;
    } else if (text[2] != '\0') {
        if (!read(text + 2, &span.last, &text) || *text != '\0') {
            return false;
        }
    } else if (!has_first) {
        return false;
    }
    if (span.last < span.first) {
        return false;
    }
    *span_out = span;
    return true;
}

bool cli_read_span(const char *text, struct tarn_span *span_out)
{
    return read_span(text, read_number, span_out);
}

bool cli_read_time_span(const char *text, struct tarn_span *span_out)
{
    return read_span(text, read_time, span_out);
}

bool cli_read_instant(const char *text, struct tarn_instant *instant_out)
{
    static const struct {
        const char *word;
        enum tarn_instant_kind kind;
        read_value *read; /* NULL: no value */
    } words[] = {
        {"peak", TARN_AT_PEAK, NULL},       {"reserved-peak", TARN_AT_RESERVED_PEAK, NULL},
        {"start", TARN_AT_START, NULL},     {"end", TARN_AT_END, NULL},
        {"oom:", TARN_AT_OOM, read_number}, {"event:", TARN_AT_EVENT, read_number},
        {"time:", TARN_AT_TIME, read_time}, {"step:", TARN_AT_STEP, read_number},
    };

    if (strcmp(text, "oom") == 0) {
        text = "oom:1";
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct tarn_instant instant = {.kind = words[i].kind};
        const size_t length = strlen(words[i].word);
        const char *end = text + length;

        if (strncmp(text, words[i].word, length) == 0 &&
            (!words[i].read || words[i].read(end, &instant.number, &end)) && *end == '\0') {
            *instant_out = instant;
            return true;
        }
    }
    return false;
}

bool cli_read_pool(const char *text, struct tarn_selection *selection)
{
    const char *end;
    uint64_t pool[2];

    if (strcmp(text, "default") == 0) {
        selection->pools = TARN_POOLS_DEFAULT;
        return true;
    }
    if (strcmp(text, "private") == 0) {
        selection->pools = TARN_POOLS_PRIVATE;
        return true;
    }
    if (!read_number(text, &pool[0], &end) || *end != ',' ||
        !read_number(end + 1, &pool[1], &end) || *end != '\0') {
        return false;
    }
    selection->pools = TARN_POOLS_ONE;
    memcpy(selection->pool, pool, sizeof pool);
    return true;
}

bool cli_read_threshold(const char *text, double *percent_out, uint64_t *bytes_out)
{
    char digits[32];
    uint64_t unit;
    const size_t length = real_length(text);

    if (length == 0 || length >= sizeof digits) {
        return false;
    }
    memcpy(digits, text, length);
    digits[length] = '\0';
    const double value = strtod(digits, NULL);

    if (strcmp(text + length, "%") == 0) {
        *percent_out = value;
        *bytes_out = 0;
        return true;
    }
    if (!cli_unit_read(text + length, &unit) || value * (double)unit >= 9e18) {
        return false;
    }
    *percent_out = -1;
    *bytes_out = (uint64_t)(value * (double)unit);
    return true;
}
