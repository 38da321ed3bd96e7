/* SPDX-License-Identifier: MIT */
/*
 * Looks for POSIX extended regular expressions in texts, in bounded time and memory: all ways to go
 * on are followed at once, a byte of the text after the other (Thompson's construction), so that a
 * search takes steps in the order of operations times bytes, whatever the expression. The C
 * library's takes minutes and gigabytes for one text of 4 KiB, "(a|b)*a(a|b){300}c" for example;
 * PCRE2 backtracks and can only give up, and RE2 would bring a C++ runtime into a C library.
 *
 * An expression is a list of operations. Those of a part of it lie in one piece and jump only by
 * distances, within the piece or just behind it; so parts are copied and moved as they are.
 *
 * Bytes are compared as bytes, as in the C locale: "." is one byte, [[:alpha:]] are ASCII letters.
 * Also understands what GNU adds: \w \W \s \S \b \B \< \> \` \'. Owns its lists; searching changes
 * nothing, so any number of threads may. No host memory is needed to search.
 */
#ifndef TN_BASE_MATCHER_H
#define TN_BASE_MATCHER_H

#include "base/vec.h"
#include "tarn/status.h"

enum {
    TN_MATCHER_OPS_MAX = 8192, /* a search takes some 50 KiB of stack */
    TN_MATCHER_DEPTH_MAX = 100 /* parentheses in parentheses */
};

struct tn_matcher {
    struct tn_vec ops;  /* struct tn_match_op */
    struct tn_vec sets; /* struct tn_match_set */
};

/* `text` must be an expression that the C library takes. TARN_ERR_HOST_MEMORY, or TARN_ERR_LIMIT
 * when it has too many operations; there is nothing to release then. */
enum tarn_status tn_matcher_init(struct tn_matcher *matcher, const char *text) TN_MUST_CHECK;
void tn_matcher_fini(struct tn_matcher *matcher);

/* Whether some part of the text matches. */
bool tn_matcher_finds(const struct tn_matcher *matcher, const char *text, size_t length);

#endif
