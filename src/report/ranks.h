/* SPDX-License-Identifier: MIT */
/* What the document of the ranks needs besides their result. */
#ifndef TN_REPORT_RANKS_H
#define TN_REPORT_RANKS_H

#include "report/name_table.h"
#include "report/result.h"

/* What one group held in a rank that is not added from a snapshot. */
struct tn_rank_part {
    uint32_t name; /* in tn_ranks_names */
    uint64_t bytes;
    uint64_t blocks;
};

/* Adds a rank; its file is copied. Numbers of ranks follow the order of addition. False without
 * host memory; nothing was added then. */
bool tn_ranks_add_parts(struct tarn_ranks *ranks, const struct tarn_rank *rank,
                        const struct tn_rank_part *parts, size_t count) TN_MUST_CHECK;

/* Where names of groups are made, and the model whose stacks they may have. Borrowed. */
struct tn_name_table *tn_ranks_names(struct tarn_ranks *ranks);
struct tn_model *tn_ranks_kept(struct tarn_ranks *ranks);

/* After tarn_ranks_compare: the number of the rank in row `row` of its result. */
size_t tn_ranks_number(const struct tarn_ranks *ranks, size_t row);

/* The options of tarn_ranks_create. */
const struct tarn_report_options *tn_ranks_options(const struct tarn_ranks *ranks);

#endif
