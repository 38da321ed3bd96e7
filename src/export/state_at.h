/* SPDX-License-Identifier: MIT */
/*
 * The segments of a device at an earlier time point, with their blocks, as a snapshot taken then
 * would have them: the layout (analysis/layout.h) as segments of a file.
 */
#ifndef TN_EXPORT_STATE_AT_H
#define TN_EXPORT_STATE_AT_H

#include "analysis/timeline.h"
#include "base/vec.h"
#include "export/model_copy.h"

/* Appends them to `segments` (struct tn_model_segment), in order of addresses, blocks in the arena
 * of copy->to. `entry` is the last that counts, TN_NEVER: none does. Failures are noted in
 * copy->status. */
void tn_state_segments(struct tn_model_copy *copy, const struct tn_timeline *timeline,
                       uint64_t entry, struct tn_vec *segments);

#endif
