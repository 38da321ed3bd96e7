/* SPDX-License-Identifier: MIT */
/* What a replay is made of. Owns: its program and its text. Immutable once made. */
#ifndef TN_REPLAY_REPLAY_H
#define TN_REPLAY_REPLAY_H

#include "replay/program.h"
#include "tarn/replay.h"

struct tarn_replay {
    struct tn_program program;
    struct tarn_config config; /* of the recorded run, as far as it can be read */
    char *conf;                /* as text */
};

/* Whether the replay was made of a snapshot like this one. */
bool tn_replay_is_of(const struct tarn_replay *replay, const struct tn_model *model);

/* A replay of the same trace with the limit that was found for it, made anew from the model; the
 * caller's. */
enum tarn_status tn_replay_repeat(const struct tarn_replay *replay, const struct tn_model *model,
                                  struct tarn_replay **replay_out,
                                  struct tarn_error *error) TN_MUST_CHECK;

#endif
