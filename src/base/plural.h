/* SPDX-License-Identifier: MIT */
/* "1 stack", "2 stacks": the word that follows a number. */
#ifndef TN_BASE_PLURAL_H
#define TN_BASE_PLURAL_H

#include <stdint.h>

enum {
    TN_WORD_MAX = 32
};

struct tn_word {
    char text[TN_WORD_MAX];
};

/* The singular of an English plural ("stacks", "categories") after 1, else the plural itself. At
 * most TN_WORD_MAX - 1 bytes. */
struct tn_word tn_plural(uint64_t count, const char *plural);

#endif
