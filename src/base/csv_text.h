/* SPDX-License-Identifier: MIT */
/* Texts as cells of CSV: in quotes, which are doubled inside; what does not show is escaped, line
 * ends among it. A text that a spreadsheet would take for a formula begins with "'". */
#ifndef TN_BASE_CSV_TEXT_H
#define TN_BASE_CSV_TEXT_H

#include "base/text_out.h"

/* A whole cell. */
void tn_csv_put(struct tn_text_out *out, const char *text, size_t length);

/* A cell in parts: the opening quote of one that begins with `text`, then the parts. The caller
 * closes the quote. */
void tn_csv_begin(struct tn_text_out *out, const char *text, size_t length);
void tn_csv_put_part(struct tn_text_out *out, const char *text, size_t length);

#endif
