/* SPDX-License-Identifier: MIT */
/*
 * Many ranks side by side: which one stands out, and what it holds that the others do not. What
 * each held at its instant is given by the caller (fleet/fleet_rows.c), rank by rank.
 */
#ifndef TN_REPORT_RANKS_H
#define TN_REPORT_RANKS_H

#include "report/name_table.h"
#include "report/result.h"

/* One device of one snapshot. */
struct tn_rank {
    const char *file; /* the name it was added with */
    int device;
    uint64_t requested; /* of allocated blocks at the rank's instant */
    uint64_t left_out;  /* by the selection */
    uint64_t reserved_peak;
    double distance; /* of `requested` from the median, in median deviations times 1.4826 */
    bool is_outlier;
};

/* A number over all ranks. */
struct tn_rank_range {
    uint64_t least;
    uint64_t median;
    uint64_t most;
};

/* A rank that stands out. Before is the typical rank, after this one. */
struct tn_rank_outlier {
    struct tn_rank rank;
    struct tarn_changes changes;
};

enum {
    TN_RANKS_MIN = 3 /* with fewer none is an outlier */
};

struct tn_ranks_result {
    struct tn_rank_range requested;
    struct tn_rank_range reserved_peak;
    size_t rank_count;
    const struct tn_rank *ranks; /* all; those that stand out first, then most requested */
    size_t other_count;          /* the last ones, which are beyond the rows of a table */
    struct tn_rank others;       /* their sum */
    struct tn_rank total;
    struct tn_rank typical; /* the rank nearest to the median */
    size_t outlier_count;   /* at most 5 are compared */
    const struct tn_rank_outlier *outliers;
};

struct tn_ranks;

/* What the options point to is borrowed until the end. Caller owns *ranks_out,
 * destroy with tn_ranks_destroy. TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_ranks_create(const struct tarn_report_options *options,
                                 struct tn_ranks **ranks_out,
                                 struct tarn_error *error) TN_MUST_CHECK;
void tn_ranks_destroy(struct tn_ranks *ranks);

/* What one group held in a rank. */
struct tn_rank_part {
    uint32_t name; /* in tn_ranks_names */
    uint64_t bytes;
    uint64_t blocks;
};

/* Adds a rank; its file is copied. Numbers of ranks follow the order of addition. False without
 * host memory; nothing was added then. */
bool tn_ranks_add_parts(struct tn_ranks *ranks, const struct tn_rank *rank,
                        const struct tn_rank_part *parts, size_t count) TN_MUST_CHECK;

/* Where names of groups are made, and the model whose stacks they may have. Borrowed. */
struct tn_name_table *tn_ranks_names(struct tn_ranks *ranks);
struct tn_model *tn_ranks_kept(struct tn_ranks *ranks);

/* Fails with TARN_ERR_STATE when nothing was added; TARN_ERR_HOST_MEMORY. Release the result with
 * tarn_report_destroy; it may outlive the ranks. */
enum tarn_status tn_ranks_compare(struct tn_ranks *ranks, struct tn_ranks_result **result_out,
                                  struct tarn_error *error) TN_MUST_CHECK;

/* After tn_ranks_compare: the number of the rank in row `row` of its result. */
size_t tn_ranks_number(const struct tn_ranks *ranks, size_t row);

#endif
