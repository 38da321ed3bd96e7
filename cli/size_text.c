/* SPDX-License-Identifier: MIT */
#include "size_text.h"

#include <stddef.h>

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
    struct cli_size_text size = {""};

    (void)tarn_size_text(size.text, chosen, (double)bytes);
    return size;
}
