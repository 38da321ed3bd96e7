/* SPDX-License-Identifier: MIT */
/*
 * The timelines of ranks in small, as columns of zigzag numbers: each the step from the same part
 * of the rank before, because like ranks then take next to nothing. Owns its memory.
 */
#ifndef TN_PAGE_RANK_SKETCHES_H
#define TN_PAGE_RANK_SKETCHES_H

#include "fleet/fleet.h"
#include "fleet/summary_parts.h"
#include "page/column.h"

enum {
    TN_RANK_POINTS = TN_SUMMARY_POINTS
};

struct tn_record_reader;

struct tn_rank_sketches {
    struct tn_column columns[2];      /* requested, reserved */
    uint64_t last[2][TN_RANK_POINTS]; /* of the rank before */
    struct tn_record_reader *reader;  /* NULL before the first rank */
};

void tn_rank_sketches_init(struct tn_rank_sketches *sketches);
void tn_rank_sketches_fini(struct tn_rank_sketches *sketches);

/* Adds those of the line of a rank, and says how many events it has. A number that is none is 0.
 * Fails as tn_record_read. */
enum tarn_status tn_rank_sketches_add(struct tn_rank_sketches *sketches, const struct tn_line *line,
                                      uint64_t *events_out, struct tarn_error *error) TN_MUST_CHECK;

#endif
