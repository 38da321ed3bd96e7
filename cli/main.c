/* SPDX-License-Identifier: MIT */
#include "tarn/base.h"

#include <stdio.h>

int main(void)
{
    printf("tarn %s\n", tarn_version());
    return 0;
}
