/* SPDX-License-Identifier: MIT */
/*
 * When the optimizer ran: annotations Optimizer.step or, without them, events whose stack is in the
 * optimizer or in a zero_grad. Between two steps is an allocation with an empty stack, as the
 * backward pass makes them where its frames are not recorded; otherwise they are one, such as
 * those of several optimizers, or a step and the zero_grad that follows.
 *
 * Owns: its arrays; borrows the timeline. Immutable once made. Cost: O(events + frames).
 */
#ifndef TN_ANALYSIS_OPTIMIZER_STEP_H
#define TN_ANALYSIS_OPTIMIZER_STEP_H

#include "analysis/annotation.h"
#include "analysis/category.h"

struct tn_optimizer_steps {
    const struct tn_timeline *timeline;
    struct tn_categories *categories;
    struct tn_vec begins; /* uint64_t: entries that steps begin with, or before which; ascending */
    uint8_t *of_stack;    /* 0: not asked, 1: elsewhere, 2: in the optimizer */
};

/* False when host memory is missing; tn_optimizer_steps_fini then as well. */
bool tn_optimizer_steps_init(struct tn_optimizer_steps *steps, const struct tn_phases *phases,
                             struct tn_categories *categories) TN_MUST_CHECK;
void tn_optimizer_steps_fini(struct tn_optimizer_steps *steps);

/* How many begin before an entry. */
size_t tn_optimizer_steps_before(const struct tn_optimizer_steps *steps, uint64_t entry);

/* Whether the stack of an entry is in the optimizer or a zero_grad. */
bool tn_optimizer_steps_has(const struct tn_optimizer_steps *steps, uint64_t entry);

#endif
