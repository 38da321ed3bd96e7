/* SPDX-License-Identifier: MIT */
/*
 * POSIX extended regular expressions of a bounded size. The C library writes every repetition out:
 * it takes gigabytes to compile "((a{255}){255}){255}". Such expressions are refused here first.
 */
#ifndef TN_BASE_EXPRESSION_H
#define TN_BASE_EXPRESSION_H

#include "base/attr.h"
#include "tarn/status.h"

#include <regex.h>

enum {
    TN_EXPRESSION_REASON_MAX = 160,
    TN_EXPRESSION_WEIGHT_MAX = 4000, /* characters to match, each repetition written out */
    TN_EXPRESSION_DEPTH_MAX = 100    /* parentheses in parentheses */
};

/* Compiles `text` without places of matches; free with regfree. TARN_ERR_INVALID_ARGUMENT when it
 * is none or too large, TARN_ERR_HOST_MEMORY; then `reason` says why and there is nothing to
 * release. */
enum tarn_status tn_expression_init(regex_t *regex, const char *text,
                                    char reason[TN_EXPRESSION_REASON_MAX]) TN_MUST_CHECK;

#endif
