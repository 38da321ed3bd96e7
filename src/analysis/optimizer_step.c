/* SPDX-License-Identifier: MIT */
#include "analysis/optimizer_step.h"

#include "base/host_mem.h"

#include <string.h>

enum {
    STACK_ELSEWHERE = 1,
    STACK_IN_OPTIMIZER = 2
};

static const struct tn_trace_entry *entry_at(const struct tn_optimizer_steps *steps,
                                             uint64_t number)
{
    return tn_trace_at(steps->timeline->model, steps->timeline->trace, number);
}

static size_t stack_count(const struct tn_optimizer_steps *steps)
{
    return (size_t)steps->timeline->model->stacks.count + 1;
}

/* Module.zero_grad frees gradients as well, outside the optimizer. */
static bool has_zero_grad(const struct tn_model *model, struct tn_stack stack)
{
    for (uint32_t i = 0; i < stack.count; i++) {
        if (tn_string_is(tn_model_string(model, tn_model_frame(model, stack.frames[i])->name),
                         "zero_grad")) {
            return true;
        }
    }
    return false;
}

static bool stack_is_in_optimizer(const struct tn_optimizer_steps *steps, uint32_t stack)
{
    const struct tn_model *model = steps->timeline->model;
    const char *hint;
    const char *name =
        tn_category_name(steps->categories, tn_category_of_stack(steps->categories, stack), &hint);

    return strcmp(name, "optimizer") == 0 || has_zero_grad(model, tn_model_stack(model, stack));
}

static bool is_in_optimizer(const struct tn_optimizer_steps *steps, uint32_t stack)
{
    uint8_t *known = &steps->of_stack[stack];

    if (*known == 0) {
        *known = stack_is_in_optimizer(steps, stack) ? STACK_IN_OPTIMIZER : STACK_ELSEWHERE;
    }
    return *known == STACK_IN_OPTIMIZER;
}

bool tn_optimizer_steps_has(const struct tn_optimizer_steps *steps, uint64_t entry)
{
    return is_in_optimizer(steps, entry_at(steps, entry)->stack);
}

static bool is_empty_alloc(const struct tn_trace_entry *entry)
{
    return entry->action == TN_TRACE_ALLOC && entry->stack == TN_STACK_EMPTY;
}

static bool is_step(const struct tn_phases *phases, const struct tn_phase *phase)
{
    return tn_phase_is_named(tn_model_string(phases->timeline->model, phase->name),
                             "Optimizer.step");
}

/* By annotations, which are sorted by their start. */
static bool annotated_collect(struct tn_optimizer_steps *steps, const struct tn_phases *phases)
{
    const struct tn_phase *items = phases->phases.items;
    bool is_new = true;
    uint64_t at = 0;

    for (size_t i = 0; i < phases->phases.count; i++) {
        if (!is_step(phases, &items[i])) {
            continue;
        }
        for (; at < items[i].start; at++) {
            is_new = is_new || is_empty_alloc(entry_at(steps, at));
        }
        if (is_new && !tn_vec_add(&steps->begins, &items[i].start)) {
            return false;
        }
        is_new = false;
        at = items[i].end > at ? items[i].end : at;
    }
    return true;
}

/* By stacks. */
static bool recorded_collect(struct tn_optimizer_steps *steps)
{
    bool is_new = true;

    for (uint64_t i = 0; i < steps->timeline->trace->count; i++) {
        const struct tn_trace_entry *entry = entry_at(steps, i);

        if (is_empty_alloc(entry)) {
            is_new = true;
        } else if (is_in_optimizer(steps, entry->stack)) {
            if (is_new && !tn_vec_add(&steps->begins, &i)) {
                return false;
            }
            is_new = false;
        }
    }
    return true;
}

bool tn_optimizer_steps_init(struct tn_optimizer_steps *steps, const struct tn_phases *phases,
                             struct tn_categories *categories)
{
    *steps = (struct tn_optimizer_steps){.timeline = phases->timeline, .categories = categories};
    tn_vec_init(&steps->begins, sizeof(uint64_t));
    steps->of_stack = tn_host_alloc_zero(stack_count(steps));
    return steps->of_stack && annotated_collect(steps, phases) &&
           (steps->begins.count > 0 || recorded_collect(steps));
}

void tn_optimizer_steps_fini(struct tn_optimizer_steps *steps)
{
    tn_host_free(steps->of_stack, stack_count(steps));
    tn_vec_fini(&steps->begins);
}

size_t tn_optimizer_steps_before(const struct tn_optimizer_steps *steps, uint64_t entry)
{
    const uint64_t *begins = steps->begins.items;
    size_t low = 0;
    size_t high = steps->begins.count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (begins[middle] < entry) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}
