/* SPDX-License-Identifier: MIT */
/* Byte counts as text: "10.79 GiB", "512 B"; in the units of --units. */
#ifndef CLI_SIZE_TEXT_H
#define CLI_SIZE_TEXT_H

#include "tarn/base.h"

struct cli_size_text {
    char text[TARN_SIZE_TEXT_MAX];
};

struct cli_size_text cli_size_text(uint64_t bytes);

/* Sets the units of all later output. Initially TARN_UNITS_IEC. */
void cli_units_configure(enum tarn_units units);
enum tarn_units cli_units(void);

/* In the order of enum tarn_units. */
extern const char *const cli_units_choices[];

#endif
