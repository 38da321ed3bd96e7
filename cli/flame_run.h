/* SPDX-License-Identifier: MIT */
/* Shared code of the commands that write flame graphs. */
#ifndef CLI_FLAME_RUN_H
#define CLI_FLAME_RUN_H

#include "command.h"
#include "tarn/report.h"

struct cli_flame_values {
    uint64_t device;
    const char *output; /* NULL: not given */
    bool folded;
};

extern const struct cli_flame_values cli_flame_defaults;
extern const struct cli_opt cli_flame_opts[];

/* Options of the report. */
struct tarn_flame_options cli_flame_options(const struct cli_flame_values *values);

/* Output path: -o, or else PyTorch's output.svg; stdout for folded stacks. */
const char *cli_flame_output(const struct cli_flame_values *values);

/* Runs a command with one snapshot. */
enum cli_exit cli_flame_run(const struct cli_call *call, enum tarn_flame_view view);

#endif
