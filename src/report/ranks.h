/* SPDX-License-Identifier: MIT */
/* What the document of the ranks needs besides their result. */
#ifndef TN_REPORT_RANKS_H
#define TN_REPORT_RANKS_H

#include "report/result.h"

/* The options of tarn_ranks_create. */
const struct tarn_report_options *tn_ranks_options(const struct tarn_ranks *ranks);

#endif
