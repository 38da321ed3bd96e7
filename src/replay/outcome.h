/* SPDX-License-Identifier: MIT */
/*
 * The result of a replay as a snapshot: its segments and blocks, and its own trace with the stacks,
 * texts and times of the recorded entries that caused its events.
 *
 * An outcome is attached to a runner before the run and captured after it. The history stores the
 * number of the recorded entry as each event's stack.
 */
#ifndef TN_REPLAY_OUTCOME_H
#define TN_REPLAY_OUTCOME_H

#include "base/vec.h"
#include "replay/runner.h"
#include "tarn/history.h"
#include "tarn/snapshot.h"

struct tn_outcome {
    const struct tn_model *recorded;
    struct tn_runner *runner;
    struct tarn_history *history;
    struct tn_vec causes; /* uint64_t: the recorded entry of each event */
    bool no_memory;
};

/* On failure there is nothing to release. `recorded` has the trace of the runner's program. */
enum tarn_status tn_outcome_attach(struct tn_outcome *outcome, const struct tn_model *recorded,
                                   struct tn_runner *runner,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* Caller owns the snapshot. */
enum tarn_status tn_outcome_capture(struct tn_outcome *outcome, struct tarn_snapshot **snapshot_out,
                                    struct tarn_error *error) TN_MUST_CHECK;

/* Before the allocator is destroyed. */
void tn_outcome_detach(struct tn_outcome *outcome);

#endif
