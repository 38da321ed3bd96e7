/* SPDX-License-Identifier: MIT */
#include "replay/limit.h"

#include "alloc/config/size_class.h"
#include "analysis/trace_source.h"

/* If the entries from `index` on belong to a request, the bytes it asked of the device; else 0. */
static uint64_t request_around(const struct tn_model *model, const struct tn_trace *trace,
                               uint64_t index, const struct tarn_config *config)
{
    bool took = false;

    for (uint64_t i = index; i < trace->count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(model, trace, i);
        const bool failed = entry->action == TN_TRACE_OOM;

        if (failed || (took && entry->action == TN_TRACE_ALLOC)) {
            return entry->size < TN_MAX_REQUEST
                       ? tn_segment_size(failed ? entry->size : tn_round_size(entry->size, config),
                                         config)
                       : 0;
        }
        took = took || tn_trace_takes(entry);
        if (!tn_trace_gives_back(entry) && !tn_trace_takes(entry)) {
            return 0;
        }
    }
    return 0;
}

bool tn_limit_gave_back(const struct tn_program *program, const struct tn_model *model,
                        const struct tn_trace *trace, uint64_t index, uint64_t reserved,
                        const struct tarn_config *config)
{
    const double collects = config->garbage_collection_threshold;
    const double known = (double)program->limit.at_least;
    const uint64_t request = request_around(model, trace, index, config);

    return request > 0 &&
           (request > program->limit.at_least || reserved > program->limit.at_least - request ||
            (collects > 0.0 && (double)reserved > collects * known));
}

/* A request that was short of memory bounds the limit: it would have exceeded it, or, with garbage
 * collection, the collecting share of the limit was reserved. */
static void bound_from_shortage(struct tn_limit *limit, uint64_t reserved, uint64_t request,
                                const struct tarn_config *config)
{
    const double collects = config->garbage_collection_threshold;
    const double share = collects > 0.0 ? (double)reserved / collects : 0.0;
    uint64_t below = reserved + request; /* sizes add up to TN_SIZES_MAX at most */

    if (share >= 0x1p62) {
        below = UINT64_MAX;
    } else if (share >= (double)below) {
        below = (uint64_t)share + 1;
    }
    if (below > limit->at_least && below < limit->below) {
        limit->below = below;
    }
}

void tn_limit_find_bounds(struct tn_program *program, const struct tn_model *model,
                          const struct tn_trace *trace, const struct tarn_config *config)
{
    struct tn_limit *limit = &program->limit;
    uint64_t reserved = tn_program_reserved_at_start(program);
    bool in_run = false;

    *limit = (struct tn_limit){.at_least = reserved, .below = UINT64_MAX};
    for (uint64_t i = 0; i < trace->count; i++) {
        reserved = tn_reserved_after(reserved, tn_reserved_delta(tn_trace_at(model, trace, i)));
        limit->at_least = reserved > limit->at_least ? reserved : limit->at_least;
    }
    if (limit->at_least == 0) { /* no segments are recorded */
        return;
    }
    reserved = tn_program_reserved_at_start(program);
    for (uint64_t i = 0; i < trace->count; i++) {
        const struct tn_trace_entry *entry = tn_trace_at(model, trace, i);
        const bool failed = entry->action == TN_TRACE_OOM;

        if (tn_trace_gives_back(entry) && !in_run &&
            tn_limit_gave_back(program, model, trace, i, reserved, config)) {
            bound_from_shortage(limit, reserved, request_around(model, trace, i, config), config);
        }
        if (failed && entry->size < TN_MAX_REQUEST) {
            const uint64_t request = tn_segment_size(entry->size, config);

            bound_from_shortage(limit, reserved, request, config);
            if (entry->address < request && reserved + entry->address >= limit->at_least) {
                limit->by_device = true; /* what other processes left */
                limit->device = reserved + entry->address;
            }
        }
        in_run = tn_trace_gives_back(entry);
        reserved = tn_reserved_after(reserved, tn_reserved_delta(entry));
    }
}
