/* SPDX-License-Identifier: MIT */
#include "pair.h"

#include "output.h"

#include <string.h>

bool cli_pair_load(const struct cli_call *call, struct tarn_snapshot *pair_out[2], int *code_out)
{
    int codes[2];

    if (strcmp(call->arguments[0], "-") == 0 && strcmp(call->arguments[1], "-") == 0) {
        *code_out = (int)cli_fail(call->command, CLI_EXIT_USAGE,
                                  "only one of the two can be - (standard input)");
        return false;
    }
    pair_out[0] = cli_load_snapshot(call->command, call->arguments[0], &codes[0]);
    if (!pair_out[0]) {
        *code_out = codes[0];
        return false;
    }
    pair_out[1] = cli_load_snapshot(call->command, call->arguments[1], &codes[1]);
    *code_out = pair_out[1] && codes[0] ? codes[0] : codes[1];
    if (!pair_out[1]) {
        tarn_snapshot_destroy(pair_out[0]);
        return false;
    }
    return true;
}
