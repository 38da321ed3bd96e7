/* SPDX-License-Identifier: MIT */
#include "support/test.h"
int main(void)
{
    return 0;
}
