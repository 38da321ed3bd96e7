/* SPDX-License-Identifier: MIT */
/*
 * Labels of stacks, "a < b < ... < c", made shorter for a terminal: outer frames at their end are
 * left out, as long as rows that differ still do. What follows from the frame in which a row
 * differs from the one most like it is left out first; then what is between the first frame and
 * that one. A label may stay longer than there is room.
 *
 * Owns: its texts. Guarded by its owner. Cost: O(n log n) comparisons of texts.
 */
#ifndef TN_RENDER_LABEL_FIT_H
#define TN_RENDER_LABEL_FIT_H

#include "base/attr.h"

#include <stdbool.h>
#include <stddef.h>

struct tn_label_fit {
    char **texts; /* by row; NULL: the whole label */
    size_t *sizes;
    size_t count;
};

/* `room` is in characters. False when host memory is missing; then there is nothing to release. */
bool tn_label_fit_init(struct tn_label_fit *fit, const char *const *labels, size_t count,
                       size_t room) TN_MUST_CHECK;
void tn_label_fit_fini(struct tn_label_fit *fit);

/* How many characters of UTF-8 a text has. */
size_t tn_label_columns(const char *text, size_t size);

#endif
