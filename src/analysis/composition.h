/* SPDX-License-Identifier: MIT */
/* What memory is made of at one moment: a line, a table of who holds it, and why more is reserved
 * than in use. */
#ifndef TN_ANALYSIS_COMPOSITION_H
#define TN_ANALYSIS_COMPOSITION_H

#include "analysis/group.h"

struct tn_composition {
    struct tn_time_point moment;
    struct tn_groups groups;
};

/* False when host memory is missing; then there is nothing to release. */
bool tn_composition_init(struct tn_composition *composition, const struct tn_analysis *analysis,
                         const struct tn_time_point *moment) TN_MUST_CHECK;
void tn_composition_fini(struct tn_composition *composition);

/* `what` is its name, "most in use". False when host memory is missing for a tree of calls. */
bool tn_composition_put(struct tn_text_out *out, const struct tn_analysis *analysis,
                        const struct tn_composition *composition, const char *what,
                        uint64_t limit) TN_MUST_CHECK;

/* The same as the member `key`. */
bool tn_composition_put_json(struct tn_json_text *json, const struct tn_analysis *analysis,
                             const struct tn_composition *composition, const char *key,
                             uint64_t limit) TN_MUST_CHECK;

#endif
