/* SPDX-License-Identifier: MIT */
/* Causes of failed requests, and what would have helped, for `tarn oom`. */
#ifndef TN_RENDER_OOM_CAUSES_TABLE_H
#define TN_RENDER_OOM_CAUSES_TABLE_H

#include "render/document.h"

extern const struct tn_row_table tn_oom_causes_table;
extern const struct tn_row_table tn_oom_remedies_table;

/* The words of enum tarn_oom_verdict. */
extern const char *const tn_oom_verdict_words[];

/* In text, below the first failure of a cause: the others of it. */
void tn_oom_cause_put(const struct tn_document *document, const struct tarn_oom_cause *cause);

/* The causes, not in text. */
void tn_oom_causes_put(struct tn_document *document, const struct tarn_oom_result *result);

/* What would have let the run finish. */
void tn_oom_remedies_put(struct tn_document *document, const struct tarn_oom_result *result);

#endif
