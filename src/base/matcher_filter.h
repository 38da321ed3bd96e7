/* SPDX-License-Identifier: MIT */
/*
 * Which of many expressions may match a text: those of whose matches the text has a possible
 * beginning (tn_matcher.places), and whose last byte it ends in, if they have one. One pass over
 * the text for 32 expressions, one byte of a word for each, so a text that none matches costs a
 * fraction of as many searches. What the filter leaves out does not match; what it names may.
 */
#ifndef TN_BASE_MATCHER_FILTER_H
#define TN_BASE_MATCHER_FILTER_H

#include "base/matcher.h"

enum {
    TN_FILTER_WORDS = 4 /* words that one pass follows */
};

struct tn_matcher_filter {
    struct tn_vec groups;
    size_t count; /* of expressions, numbered as they were added */
};

void tn_matcher_filter_init(struct tn_matcher_filter *filter);
void tn_matcher_filter_fini(struct tn_matcher_filter *filter);

/* Copies what it needs of the matcher. False without host memory. */
bool tn_matcher_filter_add(struct tn_matcher_filter *filter,
                           const struct tn_matcher *matcher) TN_MUST_CHECK;

/* How far into a text 32 expressions are; all zero at its beginning. A text has as many of them as
 * the filter has groups. Many texts with the same beginning share it: it is a plain value. */
struct tn_filter_place {
    uint64_t fitting[TN_FILTER_WORDS]; /* bit k: the last k + 1 bytes can be the first of a match */
    uint64_t seen[TN_FILTER_WORDS];
    uint8_t last; /* byte; 0, in which no expression ends, before the first */
};

/* Goes on by more bytes of the text. */
void tn_filter_follow(const struct tn_matcher_filter *filter, struct tn_filter_place *places,
                      const char *text, size_t length);

/* The expressions that may match a text, in order. Borrows both. */
struct tn_filter_scan {
    const struct tn_matcher_filter *filter;
    const struct tn_filter_place *places;
    size_t group;                   /* that is looked at */
    size_t word;                    /* of it */
    uint64_t hits[TN_FILTER_WORDS]; /* of its expressions that were not named: some bit of a byte */
};

struct tn_filter_scan tn_filter_scan_begin(const struct tn_matcher_filter *filter,
                                           const struct tn_filter_place *places);

/* False when there is none left. */
bool tn_filter_scan_next(struct tn_filter_scan *scan, size_t *number_out);

#endif
