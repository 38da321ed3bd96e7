/* SPDX-License-Identifier: MIT */
/*
 * The state before the first entry of a trace: the layout there (analysis/layout.h) as segments and
 * blocks of a program, without what no allocator could have had.
 */
#ifndef TN_REPLAY_START_STATE_H
#define TN_REPLAY_START_STATE_H

#include "analysis/trace_source.h"
#include "replay/program.h"

/* Fills the program's start segments and blocks (without slots) and its notes. */
enum tarn_status tn_start_state_rebuild(struct tn_program *program,
                                        const struct tn_trace_source *source,
                                        struct tarn_error *error) TN_MUST_CHECK;

#endif
