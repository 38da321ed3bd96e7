/* SPDX-License-Identifier: MIT */
/* The only file of the plug that prints and ends the process. */
#include "plug/pytorch/last_words.h"

#include <stdio.h>
#include <stdlib.h>

void tn_torch_last_words(const char *why, const char *missing)
{
    fprintf(stderr,
            "tarn: %s\n"
            "tarn: this cannot be raised in Python, because the process has no symbol %s; ending it"
            " here, since torch would go on with a null pointer\n",
            why, missing);
    abort();
}
