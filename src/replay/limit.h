/* SPDX-License-Identifier: MIT */
/*
 * What limited a recorded run. A snapshot does not say whether the allocator had a memory limit
 * (torch.cuda.set_per_process_memory_fraction) or how large the device was, but a trace shows what
 * was reserved, what was refused, and when the allocator gave memory back in the middle of a
 * request, which it only does when it is short.
 *
 * The rules are those of the ladder of fallbacks: a request that would go over the limit, or that
 * the device refuses, first gives back what is free; with garbage_collection_threshold the
 * allocator gives back before it asks, once that share of the limit is reserved.
 */
#ifndef TN_REPLAY_LIMIT_H
#define TN_REPLAY_LIMIT_H

#include "replay/program.h"
#include "snapshot/model.h"
#include "tarn/config.h"

#define TN_LIMIT_UNIT ((uint64_t)2 << 20) /* of round numbers */

/* Fills program->limit from the trace, whose start state the program has. `config`: the recorded
 * settings. */
void tn_limit_find_bounds(struct tn_program *program, const struct tn_model *model,
                          const struct tn_trace *trace, const struct tarn_config *config);

/* Whether a limit shows in the trace at all. */
static inline bool tn_limit_shows(const struct tn_limit *limit)
{
    return limit->below != UINT64_MAX;
}

/* A run of segments given back from entry `index` on: whether it happened in the middle of a
 * request, for want of memory. `reserved`: bytes before it. */
bool tn_limit_gave_back(const struct tn_program *program, const struct tn_model *model,
                        const struct tn_trace *trace, uint64_t index, uint64_t reserved,
                        const struct tarn_config *config);

/* Looks for a limit within the bounds under which the recorded run comes out exactly, the roundest
 * first, by replaying; sets limit->bytes, which stays 0 without one. */
enum tarn_status tn_limit_search(struct tn_program *program, const struct tarn_config *config,
                                 struct tarn_error *error) TN_MUST_CHECK;

#endif
