/* SPDX-License-Identifier: MIT */
/*
 * A section of the page: bytes, deflated (zlib's form, whose check sum the browser verifies) and in
 * base64, inside of a script element that no browser runs.
 */
#ifndef TN_VIEWER_SECTION_H
#define TN_VIEWER_SECTION_H

#include "base/text_out.h"
#include "viewer/column.h"

/* `name` needs no escape. False when host memory is missing, also if it was for the column; what
 * the writer refuses stays with `out`. */
bool tn_section_put(struct tn_text_out *out, const char *name,
                    const struct tn_column *column) TN_MUST_CHECK;

#endif
