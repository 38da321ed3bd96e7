/* SPDX-License-Identifier: MIT */
#include "only.h"

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>

static bool is_set;
static regex_t wanted;

void bench_only_set(const char *expression)
{
    const int status = regcomp(&wanted, expression, REG_EXTENDED | REG_NOSUB);
    char text[120];

    if (status != 0) {
        (void)regerror(status, &wanted, text, sizeof text);
        (void)fprintf(stderr, "bench: --only %s: %s\n", expression, text);
        exit(2);
    }
    is_set = true;
}

bool bench_only_wants(const char *pattern)
{
    return !is_set || regexec(&wanted, pattern, 0, NULL, 0) == 0;
}
