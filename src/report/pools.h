/* SPDX-License-Identifier: MIT */
/* The free memory of each pool and stream, as several reports have it. */
#ifndef TN_REPORT_POOLS_H
#define TN_REPORT_POOLS_H

#include "analysis/layout.h"
#include "report/result.h"

struct tarn_pool_row tn_pool_row_of(const struct tn_layout_row *row);

/* All rows, in the result. NULL without host memory. */
const struct tarn_pool_row *tn_pool_rows_make(struct tn_result *result,
                                              const struct tn_layout *layout) TN_MUST_CHECK;

#endif
