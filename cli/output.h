/* SPDX-License-Identifier: MIT */
/* Writing results to standard output. */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "tarn/writer.h"

/* A writer to stdout. */
struct tarn_writer cli_output_writer(void);

/* Loads a snapshot for a command: says on stderr what is wrong with the file, also when a part of
 * it can be used. NULL with *exit_out set when there is nothing to show; with a partial snapshot
 * *exit_out is what the command should return in the end, else CLI_EXIT_OK. */
struct cli_command;
struct tarn_snapshot *cli_load_snapshot(const struct cli_command *command, const char *path,
                                        int *exit_out);

#endif
