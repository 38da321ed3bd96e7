/* SPDX-License-Identifier: MIT */
/*
 * The blocks allocated right after an entry. Reports ask for those of few entries, several of them
 * for the same; who runs such reports finds the blocks of all entries first, in one pass over the
 * lifetimes, and lends them to the timeline.
 *
 * Owns: lists of pointers; borrows the timeline's lifetimes. Immutable once made. Cost:
 * O(lifetimes) however many entries, where most blocks are short-lived; O(1) where the timeline has
 * them.
 */
#ifndef TN_ANALYSIS_LIVE_H
#define TN_ANALYSIS_LIVE_H

#include "analysis/timeline.h"

/* Those of one entry. */
struct tn_live {
    const struct tn_lifetime *const *blocks; /* in the order of the timeline */
    size_t count;
    struct tn_vec own; /* const struct tn_lifetime *: empty when the timeline has them */
};

/* Right after an entry; TN_NEVER: before the first. False when host memory is missing; then there
 * is nothing to release. */
bool tn_live_init(struct tn_live *live, const struct tn_timeline *timeline,
                  uint64_t entry) TN_MUST_CHECK;
void tn_live_fini(struct tn_live *live);

/* Those of several entries. */
struct tn_live_sets {
    struct tn_vec sets; /* struct tn_live_set, by time */
};

/* Entries may be equal. False as tn_live_init. */
bool tn_live_sets_init(struct tn_live_sets *sets, const struct tn_timeline *timeline,
                       const uint64_t *entries, size_t count) TN_MUST_CHECK;
void tn_live_sets_fini(struct tn_live_sets *sets);

#endif
