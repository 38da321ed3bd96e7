/* SPDX-License-Identifier: MIT */
/*
 * Blocks put together by a key: who holds memory at a moment.
 */
#ifndef TN_ANALYSIS_GROUP_H
#define TN_ANALYSIS_GROUP_H

#include "analysis/analysis.h"

/* The blocks of one key at one moment. */
struct tn_group {
    uint64_t key;
    uint64_t bytes; /* what the table is sorted by */
    uint64_t count;
    uint64_t before; /* bytes of these that were there before the first entry */
};

struct tn_groups {
    struct tn_vec rows; /* struct tn_group, most bytes first; of equals the lower key */
    uint64_t bytes;     /* of all rows */
    uint64_t count;
    uint64_t before;
};

/* What was in use right after an entry. False when host memory is missing; then there is nothing to
 * release. */
bool tn_groups_collect(struct tn_groups *groups, const struct tn_analysis *analysis,
                       uint64_t entry) TN_MUST_CHECK;
void tn_groups_fini(struct tn_groups *groups);

#endif
