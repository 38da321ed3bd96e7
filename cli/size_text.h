/* SPDX-License-Identifier: MIT */
/* Amounts of bytes for people: "10.79 GiB", "512 B". */
#ifndef CLI_SIZE_TEXT_H
#define CLI_SIZE_TEXT_H

#include <stdint.h>

struct cli_size_text {
    char text[32];
};

struct cli_size_text cli_size_text(uint64_t bytes);

#endif
