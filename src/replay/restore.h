/* SPDX-License-Identifier: MIT */
/*
 * Restores the state before a trace in the allocator of a run: segments with their blocks and the
 * free memory between them, expandable ones with their unmapped parts, at the recorded addresses if
 * the run keeps those. Under settings with other kinds of segments, the blocks are allocated
 * again.
 */
#ifndef TN_REPLAY_RESTORE_H
#define TN_REPLAY_RESTORE_H

#include "replay/runner.h"

/* Called before the first operation; resets accumulated counters and peaks. TARN_ERR_OUT_OF_MEMORY
 * if the state does not fit the device; TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_restore_start(struct tn_runner *runner, struct tarn_error *error) TN_MUST_CHECK;

#endif
