/* SPDX-License-Identifier: MIT */
#include "base/size_text.h"

#include <math.h>
#include <stdio.h>

enum {
    PREFIX_COUNT = 9
};

static struct tn_size_text amount_text(double bytes, double step,
                                       const char *const prefixes[PREFIX_COUNT])
{
    struct tn_size_text result;
    unsigned unit = 0;

    while (unit < PREFIX_COUNT - 1 && fabs(bytes) >= step) {
        bytes /= step;
        unit++;
    }
    (void)snprintf(result.text, sizeof result.text, "%.1f%sB", bytes, prefixes[unit]);
    return result;
}

struct tn_size_text tn_size_text_in(enum tarn_units units, double bytes)
{
    static const char *const iec[PREFIX_COUNT] = {"",   "Ki", "Mi", "Gi", "Ti",
                                                  "Pi", "Ei", "Zi", "Yi"};
    static const char *const si[PREFIX_COUNT] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
    struct tn_size_text result;

    if (units == TARN_UNITS_BYTES) {
        (void)snprintf(result.text, sizeof result.text, "%.0f", bytes);
        return result;
    }
    return units == TARN_UNITS_SI ? amount_text(bytes, 1000.0, si)
                                  : amount_text(bytes, 1024.0, iec);
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
