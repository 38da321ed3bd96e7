/* SPDX-License-Identifier: MIT */
#include "base/decimal.h"

#include "base/checked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_MAX = 64
};

/* The locale's decimal point: the text between the digits of 0.5. */
static const char *point_read(char buffer[16])
{
    (void)snprintf(buffer, 16, "%.1f", 0.5);
    buffer[strlen(buffer) - 1] = '\0';
    return buffer + 1;
}

enum tn_decimal_result tn_whole_parse(const char *text, uint64_t *value_out)
{
    const bool is_negative = *text == '-';
    const char *digit = text + (*text == '-' || *text == '+');
    uint64_t value = 0;

    if (*digit < '0' || *digit > '9') {
        return TN_DECIMAL_NONE;
    }
    for (; *digit >= '0' && *digit <= '9'; digit++) {
        if (!tn_mul_u64(value, 10, &value) ||
            !tn_add_u64(value, (uint64_t)(*digit - '0'), &value)) {
            return is_negative ? TN_DECIMAL_NEGATIVE : TN_DECIMAL_RANGE;
        }
    }
    if (is_negative && value != 0) {
        return TN_DECIMAL_NEGATIVE;
    }
    *value_out = value;
    return TN_DECIMAL_OK;
}

/* Whether strtod may accept the character, including hexadecimal, "inf" and "nan". */
static bool is_number_char(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '-';
}

enum tn_decimal_result tn_real_parse(const char *text, double *value_out)
{
    char point_buffer[16];
    char number[NUMBER_MAX];
    const char *point = point_read(point_buffer);
    size_t used = 0;
    char *end;
    double value;

    for (; is_number_char(*text); text++) {
        const char *piece = *text == '.' ? point : text;
        const size_t length = *text == '.' ? strlen(point) : 1;

        if (used + length >= sizeof number) {
            break;
        }
        memcpy(number + used, piece, length);
        used += length;
    }
    number[used] = '\0';
    errno = 0;
    value = strtod(number, &end);
    if (end == number) {
        return TN_DECIMAL_NONE;
    }
    if (errno == ERANGE || (is_number_char(*text) && *end == '\0')) {
        return TN_DECIMAL_RANGE;
    }
    *value_out = value;
    return TN_DECIMAL_OK;
}

/* Puts '.' where the locale has its own decimal point. */
static void point_make_plain(char *text)
{
    char buffer[16];
    const char *point = point_read(buffer);
    char *at = strstr(text, point);

    if (at) {
        *at = '.';
        memmove(at + 1, at + strlen(point), strlen(at + strlen(point)) + 1);
    }
}

struct tn_decimal_text tn_real_format(double value)
{
    struct tn_decimal_text out;
    double back;

    for (int digits = 1; digits <= 17; digits++) {
        (void)snprintf(out.text, sizeof out.text, "%.*g", digits, value);
        point_make_plain(out.text);
        if (tn_real_parse(out.text, &back) == TN_DECIMAL_OK && back >= value && back <= value) {
            break;
        }
    }
    return out;
}
