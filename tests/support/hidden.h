/* SPDX-License-Identifier: MIT */
/* Functions that libraries do not have, for tests that are linked with --wrap=tn_dl_find. */
#ifndef TESTS_SUPPORT_HIDDEN_H
#define TESTS_SUPPORT_HIDDEN_H

#include "base/dl.h"

#include <stdbool.h>
#include <string.h>

enum {
    HIDDEN_MAX = 4
};

static const char *hidden[HIDDEN_MAX]; /* names, NULL = none */

/* One that is another function. */
static const char *replaced; /* NULL = none */
static const void *replacement;

bool __real_tn_dl_find(void *library, const char *name, void *function_out);
bool __wrap_tn_dl_find(void *library, const char *name, void *function_out);

bool __wrap_tn_dl_find(void *library, const char *name, void *function_out)
{
    for (int i = 0; i < HIDDEN_MAX; i++) {
        if (hidden[i] && strcmp(hidden[i], name) == 0) {
            return false;
        }
    }
    if (replaced && strcmp(replaced, name) == 0) {
        memcpy(function_out, replacement, sizeof(void *));
        return true;
    }
    return __real_tn_dl_find(library, name, function_out);
}

/* `function` points to a pointer to the function that takes the place of that name; NULL: none. */
static inline void replace(const char *name, const void *function)
{
    replaced = name;
    replacement = function;
}

/* Hides these two, NULL = none, and no others. */
static inline void hide(const char *first, const char *second)
{
    hidden[0] = first;
    hidden[1] = second;
}

#endif
