/* SPDX-License-Identifier: MIT */
/*
 * Bars behind the shares of a table, for terminals: which rows matter is seen at a glance.
 * Pipes and files have none, so what programs read keeps its columns.
 */
#ifndef TN_RENDER_SHARE_BAR_H
#define TN_RENDER_SHARE_BAR_H

#include "base/text_out.h"

#include <stdbool.h>

/* How many characters a bar has in a line of so many columns, of which the table's others take
 * `before` and names of rows keep half; 0: there is no room. One blank stands before a bar. */
unsigned tn_share_bar_width(unsigned columns, size_t before);

/* In eighths of a character in UTF-8, in whole ones of ASCII else. `percent` 0 to 100. */
void tn_share_bar_put(struct tn_text_out *out, double percent, unsigned width, bool is_utf8);

#endif
