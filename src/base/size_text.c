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

struct tn_size_text tn_size_text_message(uint64_t bytes)
{
    static const char *const units[] = {"KiB", "MiB", "GiB"};
    struct tn_size_text out;
    double amount = (double)bytes / 1024.0;
    unsigned unit = 0;

    if (bytes <= 1024) {
        (void)snprintf(out.text, sizeof out.text, "%llu bytes", (unsigned long long)bytes);
        return out;
    }
    for (; unit < 2 && amount > 1024.0; unit++) {
        amount /= 1024.0;
    }
    (void)snprintf(out.text, sizeof out.text, "%.2f %s", amount, units[unit]);
    return out;
}
