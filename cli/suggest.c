/* SPDX-License-Identifier: MIT */
#include "suggest.h"

#include <string.h>

enum {
    WORD_MAX = 32
}; /* longer words are never suggested */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    const unsigned ab = a < b ? a : b;

    return ab < c ? ab : c;
}

/* Letters to insert, delete, change or swap with the next between two words of at most WORD_MAX. */
static unsigned edit_distance(const char *a, const char *b)
{
    unsigned rows[3][WORD_MAX + 1];
    unsigned *before = rows[0]; /* two letters of `a` ago */
    unsigned *last = rows[1];
    unsigned *row = rows[2];
    const size_t length = strlen(b);

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

void cli_suggest_offer(struct cli_suggest *search, const char *candidate)
{
    const size_t a = strlen(search->word);
    const size_t b = strlen(candidate);

    if (a > WORD_MAX || b > WORD_MAX) {
        return;
    }
    const unsigned cost = edit_distance(search->word, candidate);
    if ((size_t)cost * 3 > (a > b ? a : b) || (search->best && search->best_cost <= cost)) {
        return;
    }
    search->best = candidate;
    search->best_cost = cost;
}
