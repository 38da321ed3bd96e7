/* SPDX-License-Identifier: MIT */
/*
 * Searches texts for POSIX extended regular expressions in bounded time and memory. It simulates
 * the NFA (Thompson's construction), following all alternatives in parallel byte by byte, so a
 * search takes O(operations * bytes) for any expression; bytes that cannot begin a match are
 * skipped by a table, and texts that do not end as "...$" asks at once. The C library can take minutes and gigabytes for a text of 4 KiB, for example
 * with "(a|b)*a(a|b){300}c"; PCRE2 backtracks and can only give up, and RE2 would bring a C++
 * runtime into a C library.
 *
 * An expression is a list of operations. A subexpression is contiguous and uses only relative
 * jumps, within itself or to just after it, so it can be copied and moved unchanged.
 *
 * Bytes are compared as bytes, as in the C locale: "." is one byte, [[:alpha:]] are ASCII letters.
 * GNU extensions are supported: \w \W \s \S \b \B \< \> \` \'. Owns its lists; any number of
 * threads may search at once. Searching needs no host memory.
 */
#ifndef TN_BASE_MATCHER_H
#define TN_BASE_MATCHER_H

#include "base/vec.h"
#include "tarn/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TN_MATCHER_OPS_MAX = 8192,  /* a search uses about 50 KiB of stack */
    TN_MATCHER_DEPTH_MAX = 100, /* nested parentheses */
    TN_MATCHER_END_MAX = 24
};

struct tn_matcher {
    struct tn_vec ops;  /* struct tn_match_op */
    struct tn_vec sets; /* struct tn_match_set */

    /* Of each byte: bit k is set if it can be byte k of a match, of the first `place_count` bytes.
     * 0: a match may be empty, so it can begin anywhere. */
    uint8_t places[256];
    unsigned place_count;

    /* What every text that matches ends with, as far as it is plain: "ward" of "(for|back)ward$". */
    char end[TN_MATCHER_END_MAX];
    unsigned end_count;
};

/* `text` must be an expression that regcomp accepts. TARN_ERR_HOST_MEMORY, or TARN_ERR_LIMIT for
 * too many operations; there is nothing to release then. */
enum tarn_status tn_matcher_init(struct tn_matcher *matcher, const char *text) TN_MUST_CHECK;
void tn_matcher_fini(struct tn_matcher *matcher);

/* Whether any part of the text matches. */
bool tn_matcher_finds(const struct tn_matcher *matcher, const char *text, size_t length);

#endif
