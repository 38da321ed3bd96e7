/* SPDX-License-Identifier: MIT */
/*
 * Time points of a trace at which a run should look alike: the ends of steps, or the allocations of
 * a stack that repeats at even distances, or the ends of equal parts when nothing else is known.
 */
#ifndef TN_ANALYSIS_REPEAT_H
#define TN_ANALYSIS_REPEAT_H

#include "analysis/analysis.h"

enum tn_repeat_kind {
    TN_REPEAT_STEPS,  /* from annotations */
    TN_REPEAT_STACK,  /* a stack repeats */
    TN_REPEAT_PARTS,  /* equal parts, as the options say */
    TN_REPEAT_GUESSED /* equal parts, as nothing else is known */
};

enum {
    TN_REPEATS_MAX = 32, /* of more, this many at even distances are kept */
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

/* The same, but none is dropped, and annotated steps count also when there are few. */
bool tn_repeats_init_all(struct tn_repeats *repeats, const struct tn_analysis *analysis,
                         uint64_t parts) TN_MUST_CHECK;

void tn_repeats_fini(struct tn_repeats *repeats);

#endif
