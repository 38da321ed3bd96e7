/* SPDX-License-Identifier: MIT */
#include "size_text.h"

#include <inttypes.h>
#include <stdio.h>

struct cli_size_text cli_size_text(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    struct cli_size_text size;
    double amount = (double)bytes;
    int unit = 0;

    for (; unit < 4 && amount >= 1024.0; unit++) {
        amount /= 1024.0;
    }
    (void)snprintf(size.text, sizeof size.text, "%.*f %s", unit ? 2 : 0, amount, units[unit]);
    return size;
}
