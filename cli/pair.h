/* SPDX-License-Identifier: MIT */
/* Loads the two snapshots of a command that compares. */
#ifndef CLI_PAIR_H
#define CLI_PAIR_H

#include "command.h"
#include "tarn/snapshot.h"

/* Loads both arguments and reports problems on stderr. False with *code_out set if there is nothing
 * to compare. Otherwise *code_out is the code that the command should finally return, and the
 * caller destroys both. */
bool cli_pair_load(const struct cli_call *call, struct tarn_snapshot *pair_out[2], int *code_out);

#endif
