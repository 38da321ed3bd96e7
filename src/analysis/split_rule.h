/* SPDX-License-Identifier: MIT */
/*
 * The size of the block that a recorded run gave to a request, by the settings in the snapshot and
 * the rules of the allocator (base/block_size.h). Without settings in the file, PyTorch's defaults.
 */
#ifndef TN_ANALYSIS_SPLIT_RULE_H
#define TN_ANALYSIS_SPLIT_RULE_H

#include "base/block_size.h"
#include "snapshot/model.h"

struct tn_split_rule {
    uint64_t divisions[TN_ROUNDUP_INTERVALS]; /* at most UINT32_MAX */
    uint64_t max_split;                       /* UINT64_MAX: none */
    bool expandable;                          /* every remainder is split off, in any segment */
};

static inline struct tn_split_rule tn_split_rule_of(const struct tn_model_settings *settings)
{
    struct tn_split_rule rule = {.max_split = UINT64_MAX};

    if (settings->present) {
        rule.expandable = settings->expandable_segments;
        rule.max_split =
            settings->max_split_size > 0 ? (uint64_t)settings->max_split_size : UINT64_MAX;
    }
    for (int i = 0; settings->has_roundup && i < TN_ROUNDUP_INTERVALS; i++) {
        const uint64_t divisions = settings->roundup_power2_divisions[i];

        rule.divisions[i] = divisions < UINT32_MAX ? divisions : UINT32_MAX;
    }
    return rule;
}

/* Bytes that a request takes of its block. Readers keep sizes below 2^62. */
static inline uint64_t tn_split_rounded(const struct tn_split_rule *rule, uint64_t requested)
{
    return tn_block_round(requested, rule->divisions[tn_block_interval(requested)]);
}

/* Whether a block of so many bytes can have more of them: not in the small pool, and not where
 * every remainder is split off. */
static inline bool tn_split_leaves_slack(const struct tn_split_rule *rule, uint64_t rounded,
                                         bool is_expandable)
{
    return rounded > TN_BLOCK_SMALL_MAX && !rule->expandable && !is_expandable;
}

/* Bytes of the block that serves a rounded request from a free block of `room` bytes; all of them
 * if it does not fit, which a file may say. */
static inline uint64_t tn_split_block(const struct tn_split_rule *rule, uint64_t room,
                                      uint64_t rounded, bool is_expandable)
{
    if (room <= rounded) {
        return room;
    }
    return tn_block_splits(room - rounded, rounded,
                           !tn_split_leaves_slack(rule, rounded, is_expandable), rule->max_split)
               ? rounded
               : room;
}

#endif
