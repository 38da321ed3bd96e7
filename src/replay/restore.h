/* SPDX-License-Identifier: MIT */
/*
 * What was there before a trace, put into the allocator of a run: segments with their blocks and
 * the free memory between them, growing ones with what is not mapped between them, at the recorded
 * addresses where the run keeps those. Under settings that make other segments, blocks are
 * allocated anew.
 */
#ifndef TN_REPLAY_RESTORE_H
#define TN_REPLAY_RESTORE_H

#include "replay/runner.h"

/* Before the first operation. Counters that add up, and peaks, begin behind it.
 * TARN_ERR_OUT_OF_MEMORY when it does not fit the device; TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_restore_start(struct tn_runner *runner, struct tarn_error *error) TN_MUST_CHECK;

#endif
