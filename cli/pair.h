/* SPDX-License-Identifier: MIT */
/* Loading the two snapshots of a command that compares. */
#ifndef CLI_PAIR_H
#define CLI_PAIR_H

#include "command.h"
#include "tarn/snapshot.h"

/* Both arguments. Says on stderr what is wrong; false with *code_out set when there is nothing to
 * compare. Else *code_out is what the command should return in the end, and the caller destroys
 * both. */
bool cli_pair_load(const struct cli_call *call, struct tarn_snapshot *pair_out[2], int *code_out);

#endif
