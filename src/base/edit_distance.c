/* SPDX-License-Identifier: MIT */
/* Implements tarn_text_distance of tarn/text.h. */
#include "tarn/text.h"

#include <string.h>

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    const unsigned ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Three rows of the dynamic-programming matrix: a transposition looks two rows back. */
unsigned tarn_text_distance(const char *a, const char *b)
{
    unsigned rows[3][TARN_TEXT_DISTANCE_MAX + 1];
    unsigned *before = rows[0];
    unsigned *last = rows[1];
    unsigned *row = rows[2];
    const size_t length = strlen(b);

    if (strlen(a) > TARN_TEXT_DISTANCE_MAX || length > TARN_TEXT_DISTANCE_MAX) {
        return UINT32_MAX;
    }
    for (unsigned j = 0; j <= length; j++) {
        before[j] = row[j] = j;
    }
    for (unsigned i = 1; a[i - 1]; i++) {
        unsigned *const spare = before;

        before = last;
        last = row;
        row = spare;
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            row[j] = min3(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
                row[j] = min3(row[j], row[j], before[j - 2] + 1);
            }
        }
    }
    return row[length];
}
