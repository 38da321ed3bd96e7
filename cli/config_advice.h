/* SPDX-License-Identifier: MIT */
/* What is worth knowing about allocator settings that are valid but may not do what was meant. */
#ifndef CLI_CONFIG_ADVICE_H
#define CLI_CONFIG_ADVICE_H

#include "tarn/config.h"

enum {
    CLI_ADVICE_TEXT_MAX = 240
};

struct cli_advice {
    char text[CLI_ADVICE_TEXT_MAX]; /* one line, lower case, no full stop */
};

/* The index-th warning about these settings; false after the last. */
bool cli_config_advice(const struct tarn_config *config, size_t index,
                       struct cli_advice *advice_out);

#endif
