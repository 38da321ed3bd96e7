/* SPDX-License-Identifier: MIT */
#include "base/size_text.h"

#include <math.h>
#include <stdio.h>

enum {
    PREFIX_COUNT = 9
};

/* An amount in the largest unit of which it has one. */
struct amount {
    double value;
    unsigned unit; /* 0: bytes */
    const char *prefix;
};

static struct amount amount_in(enum tarn_units units, double bytes)
{
    static const char *const iec[PREFIX_COUNT] = {"",   "Ki", "Mi", "Gi", "Ti",
                                                  "Pi", "Ei", "Zi", "Yi"};
    static const char *const si[PREFIX_COUNT] = {"", "k", "M", "G", "T", "P", "E", "Z", "Y"};
    const double step = units == TARN_UNITS_SI ? 1000.0 : 1024.0;
    struct amount amount = {.value = bytes};

    const unsigned fixed = units >= TARN_UNITS_KIB ? (unsigned)(units - TARN_UNITS_KIB) + 1 : 0;

    while (fixed ? amount.unit < fixed
                 : amount.unit < PREFIX_COUNT - 1 && fabs(amount.value) >= step) {
        amount.value /= step;
        amount.unit++;
    }
    amount.prefix = (units == TARN_UNITS_SI ? si : iec)[amount.unit];
    return amount;
}

const char *tarn_size_text(char text_out[TARN_SIZE_TEXT_MAX], enum tarn_units units, double bytes)
{
    const struct amount amount = amount_in(units, bytes);

    if (units == TARN_UNITS_BYTES) {
        (void)snprintf(text_out, TARN_SIZE_TEXT_MAX, "%.0f", bytes);
    } else {
        (void)snprintf(text_out, TARN_SIZE_TEXT_MAX, "%.*f %sB", amount.unit > 0 ? 2 : 0,
                       amount.value, amount.prefix);
    }
    return text_out;
}

struct tn_size_text tn_size_text_in(enum tarn_units units, double bytes)
{
    struct tn_size_text result = {""};

    (void)tarn_size_text(result.text, units, bytes);
    return result;
}

struct tn_size_text tn_size_text_viz(enum tarn_units units, double bytes)
{
    const struct amount amount = amount_in(units, bytes);
    struct tn_size_text result;

    if (units == TARN_UNITS_BYTES) {
        return tn_size_text_in(units, bytes);
    }
    (void)snprintf(result.text, sizeof result.text, "%.1f%sB", amount.value, amount.prefix);
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
