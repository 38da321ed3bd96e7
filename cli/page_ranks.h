/* SPDX-License-Identifier: MIT */
/* The page of many ranks, of `tarn view --ranks`. */
#ifndef CLI_PAGE_RANKS_H
#define CLI_PAGE_RANKS_H

#include "page_run.h"

enum cli_exit cli_page_run_ranks(const struct cli_call *call);

#endif
