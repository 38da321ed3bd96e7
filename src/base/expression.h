/* SPDX-License-Identifier: MIT */
/*
 * POSIX extended regular expressions that can be bounded: of a limited size with every repetition
 * written out (the C library, which says what is no expression, takes gigabytes to compile
 * "((a{255}){255}){255}"), and without references back. Others are refused here.
 */
#ifndef TN_BASE_EXPRESSION_H
#define TN_BASE_EXPRESSION_H

#include "base/matcher.h"

enum {
    TN_EXPRESSION_REASON_MAX = 160,
    TN_EXPRESSION_WEIGHT_MAX = 4000, /* characters to match, each repetition written out */
    TN_EXPRESSION_DEPTH_MAX = 100,   /* parentheses in parentheses */
    TN_EXPRESSION_TEXT_MAX = 4096    /* bytes of a text that are worth a search */
};

/* Compiles `text`; release with tn_matcher_fini. TARN_ERR_INVALID_ARGUMENT when it is none, is too
 * large or refers back, TARN_ERR_HOST_MEMORY; then `reason` says why and there is nothing to
 * release. */
enum tarn_status tn_expression_init(struct tn_matcher *matcher, const char *text,
                                    char reason[TN_EXPRESSION_REASON_MAX]) TN_MUST_CHECK;

#endif
