/* SPDX-License-Identifier: MIT */
#include "base/size_text.h"

#include <math.h>
#include <stdio.h>

struct tn_size_text tn_size_text(double bytes)
{
    static const char *const units[] = {"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei", "Zi", "Yi"};
    const unsigned last = sizeof units / sizeof *units - 1;
    struct tn_size_text result;
    unsigned unit = 0;

    while (unit < last && fabs(bytes) >= 1024.0) {
        bytes /= 1024.0;
        unit++;
    }
    (void)snprintf(result.text, sizeof result.text, "%.1f%sB", bytes, units[unit]);
    return result;
}
