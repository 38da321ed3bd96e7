/* SPDX-License-Identifier: MIT */
/*
 * Moments of a trace at which a run should look alike: the ends of steps, or where a stack asks for
 * memory again and again at even distances, or equal parts when nothing else is known.
 */
#ifndef TN_ANALYSIS_REPEAT_H
#define TN_ANALYSIS_REPEAT_H

#include "analysis/analysis.h"

enum tn_repeat_kind {
    TN_REPEAT_STEPS,  /* annotations told */
    TN_REPEAT_STACK,  /* a stack repeats */
    TN_REPEAT_PARTS,  /* equal parts, as asked for */
    TN_REPEAT_GUESSED /* equal parts, as nothing else is known */
};

enum {
    TN_REPEATS_MAX = 32, /* of more, so many at even distances */
    TN_REPEATS_MIN = 4
};

struct tn_repeats {
    enum tn_repeat_kind kind;
    uint32_t stack;   /* of TN_REPEAT_STACK */
    uint64_t found;   /* before some were dropped */
    struct tn_vec at; /* uint64_t: event numbers, ascending, within the analysis */
};

/* `parts` is how many equal parts are wanted, 0: the best that there is. False when host memory is
 * missing; then there is nothing to release. Cost: O(n log n). */
bool tn_repeats_init(struct tn_repeats *repeats, const struct tn_analysis *analysis,
                     uint64_t parts) TN_MUST_CHECK;
void tn_repeats_fini(struct tn_repeats *repeats);

#endif
