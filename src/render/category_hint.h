/* SPDX-License-Identifier: MIT */
/* Below a table by category: why much of it has no name, and how to record the next run. */
#ifndef TN_RENDER_CATEGORY_HINT_H
#define TN_RENDER_CATEGORY_HINT_H

#include "render/row_table.h"

/* Bytes of a table. */
struct tn_unnamed {
    uint64_t total;
    uint64_t without_frames; /* allocated in the trace with an empty stack */
    uint64_t before;         /* unclassified, and from before the trace */
};

/* In text alone, once in a document, if the table is by category and a twentieth or more of the
 * total has no name for one of these reasons. */
void tn_category_hint_put(struct tn_document *document, const struct tn_unnamed *unnamed);

#endif
