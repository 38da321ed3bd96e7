/* SPDX-License-Identifier: MIT */
#include "suggest.h"

#include "tarn/text.h"

#include <string.h>

void cli_suggest_offer(struct cli_suggest *search, const char *candidate)
{
    const size_t a = strlen(search->word);
    const size_t b = strlen(candidate);
    const unsigned cost = tarn_text_distance(search->word, candidate);

    if ((size_t)cost * 3 > (a > b ? a : b) || (search->best && search->best_cost <= cost)) {
        return;
    }
    search->best = candidate;
    search->best_cost = cost;
}
