/* SPDX-License-Identifier: MIT */
#include "size_text.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    PREFIX_COUNT = 5
};

const char *const cli_units_choices[] = {"iec", "si", "bytes", NULL};

static enum tarn_units chosen;

void cli_units_configure(enum tarn_units units)
{
    chosen = units;
}

enum tarn_units cli_units(void)
{
    return chosen;
}

struct cli_size_text cli_size_text(uint64_t bytes)
{
    static const char *const iec[PREFIX_COUNT] = {"B", "KiB", "MiB", "GiB", "TiB"};
    static const char *const si[PREFIX_COUNT] = {"B", "kB", "MB", "GB", "TB"};
    const bool is_si = chosen == TARN_UNITS_SI;
    const double step = is_si ? 1000.0 : 1024.0;
    struct cli_size_text size;
    double amount = (double)bytes;
    int unit = 0;

    if (chosen == TARN_UNITS_BYTES) {
        (void)snprintf(size.text, sizeof size.text, "%" PRIu64, bytes);
        return size;
    }
    for (; unit < PREFIX_COUNT - 1 && amount >= step; unit++) {
        amount /= step;
    }
    (void)snprintf(size.text, sizeof size.text, "%.*f %s", unit ? 2 : 0, amount,
                   (is_si ? si : iec)[unit]);
    return size;
}
