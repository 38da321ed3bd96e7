/* SPDX-License-Identifier: MIT */
/*
 * Runs a program on an allocator.
 *
 * A free waits because a use is recorded on an extra stream, whose events complete only when the
 * program says so.
 */
#ifndef TN_REPLAY_RUN_H
#define TN_REPLAY_RUN_H

#include "replay/runner.h"

/* Restores the state before the trace; runs all operations. */
enum tarn_status tn_run_begin(struct tn_runner *runner, struct tarn_replay_result *result,
                              struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_run_finish(struct tn_runner *runner, struct tarn_error *error) TN_MUST_CHECK;

/* Both. */
enum tarn_status tn_run_program(struct tn_runner *runner, struct tarn_replay_result *result,
                                struct tarn_error *error) TN_MUST_CHECK;

#endif
