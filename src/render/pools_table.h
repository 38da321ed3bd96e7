/* SPDX-License-Identifier: MIT */
/* Tables of struct tarn_pool_row. */
#ifndef TN_RENDER_POOLS_TABLE_H
#define TN_RENDER_POOLS_TABLE_H

#include "render/table.h"

/* What is free where; text only. */
extern const struct tn_row_table tn_free_pools_table;

/* All numbers of a pool. */
extern const struct tn_row_column tn_pool_columns[];

#endif
