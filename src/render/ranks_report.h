/* SPDX-License-Identifier: MIT */
/* The part of a document that compares ranks, for documents that say more of them. */
#ifndef TN_RENDER_RANKS_REPORT_H
#define TN_RENDER_RANKS_REPORT_H

#include "render/document.h"
#include "report/ranks.h"

#define TN_RANKS_SCHEMA "tarn.ranks/1"

/* Its tables; tn_document_begin takes them. */
extern const struct tn_row_table tn_ranks_table;
extern const struct tn_row_table tn_ranks_changes_table;

void tn_ranks_put(struct tn_document *document, const struct tn_ranks_result *result);

#endif
