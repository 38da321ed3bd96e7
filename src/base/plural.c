/* SPDX-License-Identifier: MIT */
#include "base/plural.h"

#include "base/assertion.h"

#include <stdio.h>
#include <string.h>

struct tn_word tn_plural(uint64_t count, const char *plural)
{
    const size_t length = strlen(plural);
    struct tn_word word;

    tn_assert(length > 3 && length < TN_WORD_MAX && plural[length - 1] == 's');
    (void)snprintf(word.text, sizeof word.text, "%s", plural);
    if (count == 1 && strcmp(plural + length - 3, "ies") == 0) {
        memcpy(word.text + length - 3, "y", 2);
    } else if (count == 1) {
        word.text[length - 1] = '\0';
    }
    return word;
}
