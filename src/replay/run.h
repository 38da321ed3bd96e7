/* SPDX-License-Identifier: MIT */
/*
 * Runs a program on an allocator.
 *
 * A free that waits is made by recording a use on a stream that exists for this purpose alone,
 * whose events complete only when the program says so.
 */
#ifndef TN_REPLAY_RUN_H
#define TN_REPLAY_RUN_H

#include "replay/runner.h"

/* Rebuilds the state at the trace's beginning, and runs every operation from there. */
enum tarn_status tn_run_begin(struct tn_runner *runner, struct tarn_replay_result *result,
                              struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_run_finish(struct tn_runner *runner, struct tarn_error *error) TN_MUST_CHECK;

/* Both. */
enum tarn_status tn_run_program(struct tn_runner *runner, struct tarn_replay_result *result,
                                struct tarn_error *error) TN_MUST_CHECK;

#endif
