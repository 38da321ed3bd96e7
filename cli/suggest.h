/* SPDX-License-Identifier: MIT */
/* The known word that a misspelt one probably means. */
#ifndef CLI_SUGGEST_H
#define CLI_SUGGEST_H

/* A search in progress. Start from {.word = ...}, offer every candidate, read `best`. */
struct cli_suggest {
    const char *word;
    const char *best;   /* nearest so far or NULL; the first of equals */
    unsigned best_cost; /* of `best` */
};

/* Considers one candidate: at most a third of the longer word's letters may differ. */
void cli_suggest_offer(struct cli_suggest *search, const char *candidate);

#endif
