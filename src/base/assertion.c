/* SPDX-License-Identifier: MIT */
#include "base/assertion.h"

#include <stdio.h>
#include <stdlib.h>

void tn_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "tarn: internal error: %s:%d: %s\n", file, line, what);
    abort();
}
