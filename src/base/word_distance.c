/* SPDX-License-Identifier: MIT */
#include "base/word_distance.h"

#include <stdint.h>
#include <string.h>

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    const unsigned ab = a < b ? a : b;

    return ab < c ? ab : c;
}

unsigned tn_word_distance(const char *a, const char *b)
{
    unsigned row[TN_WORD_DISTANCE_MAX + 1]; /* distances of a's first i letters to b's first j */
    const size_t a_length = strlen(a);
    const size_t b_length = strlen(b);

    if (a_length > TN_WORD_DISTANCE_MAX || b_length > TN_WORD_DISTANCE_MAX) {
        return UINT32_MAX;
    }
    for (size_t j = 0; j <= b_length; j++) {
        row[j] = (unsigned)j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        unsigned diagonal = row[0];

        row[0] = (unsigned)i;
        for (size_t j = 1; j <= b_length; j++) {
            const unsigned above = row[j];

            row[j] = min3(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
            diagonal = above;
        }
    }
    return row[b_length];
}
