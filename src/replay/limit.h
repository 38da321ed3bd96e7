/* SPDX-License-Identifier: MIT */
/*
 * What limited a recorded run. A snapshot records neither a memory limit of the allocator
 * (torch.cuda.set_per_process_memory_fraction) nor the size of the device, but a trace shows what
 * was reserved, what was refused, and when the allocator released memory in the middle of a
 * request, which it does only if memory is short.
 *
 * This follows the slow path of a request: if it would exceed the limit, or the device refuses it,
 * the allocator first releases cached memory; with garbage_collection_threshold it releases memory
 * before it asks the device, once that share of the limit is reserved.
 */
#ifndef TN_REPLAY_LIMIT_H
#define TN_REPLAY_LIMIT_H

#include "replay/program.h"
#include "snapshot/model.h"
#include "tarn/config.h"

#define TN_LIMIT_UNIT ((uint64_t)2 << 20) /* of round numbers */

/* Fills program->limit from the trace; the program has the initial state. `config` has the recorded
 * settings. */
void tn_limit_find_bounds(struct tn_program *program, const struct tn_model *model,
                          const struct tn_trace *trace, const struct tarn_config *config);

/* Whether the trace shows a limit. */
static inline bool tn_limit_shows(const struct tn_limit *limit)
{
    return limit->below != UINT64_MAX;
}

/* Whether the segments released from entry `index` on were released in the middle of a request
 * because memory was short. `reserved`: bytes before that. */
bool tn_limit_gave_back(const struct tn_program *program, const struct tn_model *model,
                        const struct tn_trace *trace, uint64_t index, uint64_t reserved,
                        const struct tarn_config *config);

/* Searches the bounds for a limit that reproduces the recorded run exactly, by replaying it, round
 * numbers first; sets limit->bytes, which stays 0 if there is none. */
enum tarn_status tn_limit_search(struct tn_program *program, const struct tarn_config *config,
                                 struct tarn_error *error) TN_MUST_CHECK;

#endif
