/* SPDX-License-Identifier: MIT */
/* What each device of a snapshot holds, for the devices that have anything. */
#ifndef TN_ANALYSIS_TOTALS_H
#define TN_ANALYSIS_TOTALS_H

#include "base/vec.h"
#include "snapshot/model.h"

/* One device, at the time of the snapshot. Bytes but for counts. */
struct tn_totals {
    int64_t device;
    uint64_t segments; /* count */
    uint64_t reserved;
    uint64_t allocated; /* blocks handed out */
    uint64_t active;    /* and those that wait to be freed */
    uint64_t requested; /* of active blocks */
    uint64_t blocks;    /* count of active ones */
    uint64_t entries;   /* of the trace */
    uint64_t ooms;
    int64_t first_us; /* TN_TIME_NONE: no entry has a time */
    int64_t last_us;
};

/* Fills a vector of struct tn_totals in order of devices; false when host memory is missing. The
 * caller ends it with tn_vec_fini, also then. */
bool tn_totals_collect(const struct tn_model *model, struct tn_vec *totals_out) TN_MUST_CHECK;

#endif
