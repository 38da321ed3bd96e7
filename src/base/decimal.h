/* SPDX-License-Identifier: MIT */
/* Numbers as text with '.' as the decimal point, whatever the process's locale says. */
#ifndef TN_BASE_DECIMAL_H
#define TN_BASE_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TN_DECIMAL_TEXT_MAX = 32
};

struct tn_decimal_text {
    char text[TN_DECIMAL_TEXT_MAX];
};

enum tn_decimal_result {
    TN_DECIMAL_OK,
    TN_DECIMAL_NONE,     /* does not start with a number */
    TN_DECIMAL_NEGATIVE, /* whole numbers only: a minus before digits other than zeros */
    TN_DECIMAL_RANGE     /* too large or too small for the type, or more than 63 characters */
};

/* The number at the start of `text`, as std::stoull reads it: an optional sign, then decimal
 * digits; the rest is ignored. Negative numbers are reported instead of wrapped. Writes only on
 * success. */
enum tn_decimal_result tn_whole_parse(const char *text, uint64_t *value_out);

/* The number at the start of `text`, as std::stod reads it in the C locale; the rest is ignored.
 * Accepts infinity and NaN. Writes only on success. */
enum tn_decimal_result tn_real_parse(const char *text, double *value_out);

/* The shortest decimal text that tn_real_parse turns into the same number. */
struct tn_decimal_text tn_real_format(double value);

#endif
