/* SPDX-License-Identifier: MIT */
/* The table of what changed, which several reports have. */
#ifndef TN_RENDER_CHANGES_TABLE_H
#define TN_RENDER_CHANGES_TABLE_H

#include "render/document.h"

extern const struct tn_row_table tn_changes_table; /* of a device */
extern const struct tn_row_column tn_changes_columns[];

/* The table; in JSON with the sums of each kind. */
void tn_changes_put(struct tn_document *document, const struct tn_row_table *table,
                    const char *path, const struct tarn_changes *changes);

/* What was new, grew, shrank and went, in one line each. */
void tn_change_kinds_put(struct tn_text_out *out, const struct tarn_changes *changes);

#endif
