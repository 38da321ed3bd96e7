/* SPDX-License-Identifier: MIT */
/* How much two words differ, to suggest the known one that a misspelt one probably means. */
#ifndef TN_BASE_WORD_DISTANCE_H
#define TN_BASE_WORD_DISTANCE_H

enum {
    TN_WORD_DISTANCE_MAX = 63 /* longer words are compared with nothing */
};

/* Letters to insert, delete or change to make one of the other; UINT32_MAX for words longer than
 * TN_WORD_DISTANCE_MAX. Time: the product of the lengths. */
unsigned tn_word_distance(const char *a, const char *b);

#endif
