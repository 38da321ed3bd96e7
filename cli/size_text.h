/* SPDX-License-Identifier: MIT */
/* Amounts of bytes for people: "10.79 GiB", "512 B"; or as --units says. */
#ifndef CLI_SIZE_TEXT_H
#define CLI_SIZE_TEXT_H

#include "tarn/base.h"

struct cli_size_text {
    char text[32];
};

struct cli_size_text cli_size_text(uint64_t bytes);

/* What --units says; counts for all that is printed afterwards. At first TARN_UNITS_IEC. */
void cli_units_configure(enum tarn_units units);
enum tarn_units cli_units(void);

/* In the order of enum tarn_units. */
extern const char *const cli_units_choices[];

#endif
