/* SPDX-License-Identifier: MIT */
/* Loading of replays, for the commands that only need the trace of a file. */
#ifndef CLI_REPLAY_LOAD_H
#define CLI_REPLAY_LOAD_H

#include "command.h"
#include "tarn/replay.h"

/* As cli_load_snapshot, but also converts decision logs. */
struct tarn_snapshot *cli_load_recording(const struct cli_command *command, const char *path,
                                         int *exit_out);

/* The replay of the trace of --device, CLI_DEVICE_ALL if it was not given: of the first device with
 * a trace, which a note says if there are others. Caller owns it. NULL on failure, which is
 * reported on stderr, with *exit_out set. */
struct tarn_replay *cli_replay_create(const struct cli_command *command,
                                      const struct tarn_snapshot *snapshot, const char *path,
                                      uint64_t device, int *exit_out);

/* The same of a file. *exit_out is the code that the command should finally return. */
struct tarn_replay *cli_replay_load(const struct cli_command *command, const char *path,
                                    uint64_t device, int *exit_out);

/* Prints what is unknown about the recorded run to stdout, one line each. */
void cli_replay_print_notes(const struct tarn_replay *replay);

/* Name of settings in tables. */
const char *cli_conf_name(const char *conf);

#endif
