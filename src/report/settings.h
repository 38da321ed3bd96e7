/* SPDX-License-Identifier: MIT */
/* The allocator settings of a snapshot: those in effect, and what they say about its traces. */
#ifndef TN_REPORT_SETTINGS_H
#define TN_REPORT_SETTINGS_H

#include "base/arena.h"
#include "snapshot/model.h"
#include "tarn/report.h"

/* Sets `in_effect` of the result, in its arena; none without settings in the file. False without
 * host memory. */
bool tn_settings_in_effect(const struct tn_model *model, struct tn_arena *arena,
                           struct tarn_info_result *info) TN_MUST_CHECK;

/* Whether the trace of a device lost its oldest events (`trace_alloc_overflowed`: one bool, or one
 * per device as a list or as a dict by ordinal). */
bool tn_settings_trace_overflowed(const struct tn_model *model, uint32_t device);

/* `trace_alloc_max_entries`; 0 = the file does not say. */
uint64_t tn_settings_trace_entries(const struct tn_model *model);

#endif
