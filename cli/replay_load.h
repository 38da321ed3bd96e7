/* SPDX-License-Identifier: MIT */
/* Replays for the commands that only need the trace of a file. */
#ifndef CLI_REPLAY_LOAD_H
#define CLI_REPLAY_LOAD_H

#include "command.h"
#include "tarn/replay.h"

/* As cli_load_snapshot, also of decision logs, which become one. */
struct tarn_snapshot *cli_load_recording(const struct cli_command *command, const char *path,
                                         int *exit_out);

/* The replay of one device's trace (-1: the first that has one); the caller's. NULL with *exit_out
 * set, and said on stderr, when there is none; else *exit_out is what the command should return in
 * the end. */
struct tarn_replay *cli_replay_load(const struct cli_command *command, const char *path, int device,
                                    int *exit_out);

/* What is not known about the recorded run, a line each, on stdout. */
void cli_replay_print_notes(const struct tarn_replay *replay);

/* Settings as tables name them. */
const char *cli_conf_name(const char *conf);

#endif
