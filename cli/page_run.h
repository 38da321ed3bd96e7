/* SPDX-License-Identifier: MIT */
/* What the commands that write pages have in common. */
#ifndef CLI_PAGE_RUN_H
#define CLI_PAGE_RUN_H

#include "command.h"
#include "tarn/report.h"

struct cli_page_values {
    uint64_t device;
    const char *output;
    bool segments; /* only trace_plot has the option */
};

extern const struct cli_page_values cli_page_defaults;

enum cli_exit cli_page_run(const struct cli_call *call, enum tarn_page_view view);

#define CLI_PAGE_OUTPUT_OPT                                                                        \
    {                                                                                              \
        .name = "output", .letter = 'o', .kind = CLI_OPT_TEXT,                                     \
        .at = offsetof(struct cli_page_values, output), .value = "FILE",                           \
        .help = "where to write (output.html); - is standard output"                               \
    }

#endif
