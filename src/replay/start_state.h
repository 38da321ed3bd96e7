/* SPDX-License-Identifier: MIT */
/*
 * What was there before the first entry of a trace: the final segments and blocks with every entry
 * undone, last to first.
 */
#ifndef TN_REPLAY_START_STATE_H
#define TN_REPLAY_START_STATE_H

#include "replay/program.h"

/* Fills the program's start segments and blocks (without slots) and its notes. */
enum tarn_status tn_start_state_rebuild(struct tn_program *program, const struct tn_model *model,
                                        const struct tn_trace *trace,
                                        struct tarn_error *error) TN_MUST_CHECK;

#endif
