/* SPDX-License-Identifier: MIT */
#ifndef TN_REPORT_RANKS_H
#define TN_REPORT_RANKS_H

#include "report/result.h"

/* What they were created with. */
const struct tarn_report_options *tn_ranks_options(const struct tarn_ranks *ranks);

#endif
