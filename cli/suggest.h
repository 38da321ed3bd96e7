/* SPDX-License-Identifier: MIT */
/* Suggests the known word closest to a misspelt one. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

/* A search in progress. Start from {.word = ...}, offer every candidate, read `best`. */
struct cli_suggest {
    const char *word;
    const char *best;   /* closest so far or NULL; the first of equals */
    unsigned best_cost; /* of `best` */
};

/* Considers one candidate; its edit distance must be at most a third of the longer word. */
void cli_suggest_offer(struct cli_suggest *search, const char *candidate);

#endif
