/* SPDX-License-Identifier: MIT */
/*
 * Gradients whose allocation has no frames. The backward pass runs in threads of C++, so that
 * recordings with Python's stacks alone have empty stacks for it; what tells gradients then is how
 * they are used. A block is taken for one if
 *
 *   - it was allocated in the trace, with an empty stack;
 *   - its requested size is that of a parameter that was allocated before it. Parameters are those
 *     of the rules, and those by lifetime unless they have an empty stack themselves;
 *   - it is allocated when an optimizer's step begins, and the optimizer or a zero_grad frees it,
 *     or it is gone before the next step but one. In the last step of a trace it may stay.
 *
 * If no block of a trace is freed so, gradients are kept (set_to_none=False): then blocks that stay
 * over several steps are taken, provided that they account for at least half the bytes of all
 * parameters. Of one size, a step has no more gradients than there are parameters.
 *
 * Steps are annotations Optimizer.step, or else events with a stack in the optimizer, of which
 * those without an allocation of an empty stack in between are one step. A trace without either
 * has no gradients: it shows no training. It is a guess, which the name of the category says.
 */
#ifndef TN_ANALYSIS_GRADIENT_H
#define TN_ANALYSIS_GRADIENT_H

#include "analysis/annotation.h"
#include "analysis/category.h"

struct tn_gradients {
    uint8_t *of_entry; /* a bit for each entry of the trace; NULL: there are none */
    uint64_t entries;
};

/* `timeline` has lifetimes, the whole trace's; the first step ends at entry `first_step`. False
 * when host memory is missing; then there is nothing to release. Cost: O(n log n). */
bool tn_gradients_init(struct tn_gradients *gradients, const struct tn_timeline *timeline,
                       const struct tn_phases *phases, struct tn_categories *categories,
                       uint64_t first_step) TN_MUST_CHECK;

/* The same for a trace that is not followed. */
bool tn_gradients_init_trace(struct tn_gradients *gradients, const struct tn_model *model,
                             size_t device, struct tn_categories *categories,
                             uint64_t first_step) TN_MUST_CHECK;
void tn_gradients_fini(struct tn_gradients *gradients);

/* Whether the entry allocated a gradient; TN_NEVER did not. */
static inline bool tn_gradients_has(const struct tn_gradients *gradients, uint64_t entry)
{
    return gradients->of_entry && entry < gradients->entries &&
           (gradients->of_entry[entry / 8] >> (entry % 8) & 1) != 0;
}

#endif
