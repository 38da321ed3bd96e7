/* SPDX-License-Identifier: MIT */
/*
 * POSIX extended regular expressions with bounded cost: limited in size with every repetition
 * expanded, and without back-references. All others are rejected here. (The C library's regcomp,
 * which checks the syntax, takes gigabytes to compile "((a{255}){255}){255}".)
 */
#ifndef TN_BASE_EXPRESSION_H
#define TN_BASE_EXPRESSION_H

#include "base/matcher.h"

enum {
    TN_EXPRESSION_REASON_MAX = 160,
    TN_EXPRESSION_WEIGHT_MAX = 4000, /* characters to match, with repetitions expanded */
    TN_EXPRESSION_DEPTH_MAX = 100,   /* nested parentheses */
    TN_EXPRESSION_TEXT_MAX = 4096    /* bytes of a text that are searched */
};

/* Compiles `text`; release with tn_matcher_fini. TARN_ERR_INVALID_ARGUMENT when it is invalid, too
 * large or has back-references, TARN_ERR_HOST_MEMORY; then `reason` says why and there is nothing
 * to release. */
enum tarn_status tn_expression_init(struct tn_matcher *matcher, const char *text,
                                    char reason[TN_EXPRESSION_REASON_MAX]) TN_MUST_CHECK;

#endif
