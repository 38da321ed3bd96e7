/* SPDX-License-Identifier: MIT */
/* A replay. Owns: its program and its text. Immutable once created. */
#ifndef TN_REPLAY_REPLAY_H
#define TN_REPLAY_REPLAY_H

#include "replay/program.h"
#include "tarn/replay.h"

struct tarn_replay {
    struct tn_program program;
    struct tarn_config config; /* of the recorded run; the defaults if they cannot be parsed */
    char *conf;                /* as text */
};

/* Whether the replay can have been created from this snapshot. */
bool tn_replay_is_of(const struct tarn_replay *replay, const struct tn_model *model);

/* Compiles the same trace again, with the limit found for it. Caller owns the replay. */
enum tarn_status tn_replay_repeat(const struct tarn_replay *replay, const struct tn_model *model,
                                  struct tarn_replay **replay_out,
                                  struct tarn_error *error) TN_MUST_CHECK;

#endif
