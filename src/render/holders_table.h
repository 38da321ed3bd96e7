/* SPDX-License-Identifier: MIT */
/* The table of who holds memory, which several reports have. */
#ifndef TN_RENDER_HOLDERS_TABLE_H
#define TN_RENDER_HOLDERS_TABLE_H

#include "render/document.h"

extern const struct tn_row_table tn_holders_table;
extern const struct tn_row_table tn_holders_tree_table;
extern const struct tn_row_column tn_holders_columns[];

/* `path` is that of the tables; NULL: the open object. */
void tn_holders_put(struct tn_document *document, const struct tn_row_table *table,
                    const char *path, const struct tarn_holders *holders);

#endif
