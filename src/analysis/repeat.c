/* SPDX-License-Identifier: MIT */
#include "analysis/repeat.h"

#include "base/host_mem.h"
#include "base/order.h"

#include <stdlib.h>

enum {
    PARTS_DEFAULT = 10,
    COUNT_MAX = 4096,    /* how often a stack that marks steps may repeat */
    CANDIDATES_MAX = 16, /* different counts that are tried, fewest first */
    ALIKE = 3            /* distances are even when none is three times another's */
};

static bool steps_collect(struct tn_repeats *repeats, const struct tn_analysis *analysis)
{
    const uint64_t *ends = analysis->steps.items;

    for (size_t i = 0; i < analysis->steps.count; i++) {
        if (ends[i] >= analysis->timeline->first && ends[i] < analysis->timeline->limit &&
            !tn_vec_append(&repeats->at, &ends[i], 1)) {
            return false;
        }
    }
    return true;
}

static bool parts_collect(struct tn_repeats *repeats, const struct tn_analysis *analysis,
                          uint64_t parts)
{
    const uint64_t length = analysis->timeline->limit - analysis->timeline->first;
    const uint64_t count = parts < length ? parts : length;

    for (uint64_t i = 1; i <= count; i++) {
        const uint64_t part = (uint64_t)((double)length / (double)count * (double)i);
        const uint64_t at = analysis->timeline->first + part - 1;

        if (part > 0 && !tn_vec_append(&repeats->at, &at, 1)) {
            return false;
        }
    }
    return true;
}

/* ---- stacks that repeat ---- */

/* An allocation of a stack that may tell steps. */
struct call {
    uint64_t entry;
    uint32_t stack;
};

static int call_compare(const void *left, const void *right)
{
    const struct call *a = left;
    const struct call *b = right;
    const int order = tn_order(a->stack, b->stack);

    return order ? order : tn_order(a->entry, b->entry);
}

/* Whether calls come at even distances, from near the beginning to near the end. */
static bool is_even(const struct call *calls, size_t count, const struct tn_timeline *timeline)
{
    uint64_t distances[COUNT_MAX] = {0};

    for (size_t i = 0; i + 1 < count; i++) {
        distances[i] = calls[i + 1].entry - calls[i].entry;
    }
    qsort(distances, count - 1, sizeof distances[0], tn_order_numbers);
    const uint64_t middle = distances[(count - 1) / 2];

    return distances[0] * ALIKE >= middle && distances[count - 2] <= middle * ALIKE &&
           calls[0].entry - timeline->first <= middle * ALIKE &&
           timeline->limit - calls[count - 1].entry <= middle * ALIKE;
}

/* Calls of the stacks that were called `wanted` times, one stack after the other. */
static bool calls_collect(struct tn_vec *calls, const struct tn_timeline *timeline,
                          const uint32_t *counts, uint64_t wanted)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);

    calls->count = 0;
    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        const struct call call = {lifetimes[i].start, lifetimes[i].stack};

        if (call.entry != TN_NEVER && counts[call.stack] == wanted &&
            !tn_vec_append(calls, &call, 1)) {
            return false;
        }
    }
    tn_vec_sort(calls, call_compare);
    return true;
}

/* The first stack of them that tells steps; *found_out NULL when none does. */
static const struct call *even_find(const struct tn_vec *calls, size_t each,
                                    const struct tn_timeline *timeline)
{
    const struct call *items = calls->items;

    for (size_t i = 0; i + each <= calls->count; i += each) {
        if (is_even(items + i, each, timeline)) {
            return items + i;
        }
    }
    return NULL;
}

/* How many stacks were called so many times; two at least must agree. */
static void counts_rank(const struct tn_timeline *timeline, const uint32_t *counts,
                        uint32_t stacks_of[COUNT_MAX + 1])
{
    for (uint32_t i = TN_STACK_EMPTY + 1; i < timeline->model->stacks.count; i++) {
        if (counts[i] >= TN_REPEATS_MIN && counts[i] <= COUNT_MAX) {
            stacks_of[counts[i]]++;
        }
    }
}

static bool stack_collect(struct tn_repeats *repeats, const struct tn_timeline *timeline,
                          const uint32_t *counts)
{
    uint32_t stacks_of[COUNT_MAX + 1] = {0};
    struct tn_vec calls;
    unsigned candidates = 0;
    bool good = true;

    tn_vec_init(&calls, sizeof(struct call));
    counts_rank(timeline, counts, stacks_of);
    for (size_t i = TN_REPEATS_MIN; good && i <= COUNT_MAX && candidates < CANDIDATES_MAX; i++) {
        const struct call *even;

        if (stacks_of[i] < 2) {
            continue;
        }
        candidates++;
        good = calls_collect(&calls, timeline, counts, i);
        even = good ? even_find(&calls, i, timeline) : NULL;
        if (even) {
            repeats->stack = even->stack;
            for (size_t k = 0; good && k < i; k++) {
                good = tn_vec_append(&repeats->at, &even[k].entry, 1);
            }
            break;
        }
    }
    tn_vec_fini(&calls);
    return good;
}

static bool stacks_count(struct tn_repeats *repeats, const struct tn_timeline *timeline)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    const size_t size = ((size_t)timeline->model->stacks.count + 1) * sizeof(uint32_t);
    uint32_t *counts = tn_host_alloc_zero(size);

    if (!counts) {
        return false;
    }
    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        counts[lifetimes[i].stack] += lifetimes[i].start != TN_NEVER;
    }
    const bool good = stack_collect(repeats, timeline, counts);

    tn_host_free(counts, size);
    return good;
}

/* ---- all of it ---- */

/* Of too many, some at even distances, the first and the last among them. */
static void repeats_thin(struct tn_repeats *repeats)
{
    uint64_t *at = repeats->at.items;
    const size_t count = repeats->at.count;

    if (count <= TN_REPEATS_MAX) {
        return;
    }
    for (size_t i = 0; i < TN_REPEATS_MAX; i++) {
        at[i] = at[i * (count - 1) / (TN_REPEATS_MAX - 1)];
    }
    repeats->at.count = TN_REPEATS_MAX;
}

static bool repeats_find(struct tn_repeats *repeats, const struct tn_analysis *analysis,
                         uint64_t parts, size_t steps_min)
{
    repeats->kind = TN_REPEAT_PARTS;
    if (parts > 0) {
        return parts_collect(repeats, analysis, parts);
    }
    repeats->kind = TN_REPEAT_STEPS;
    if (!steps_collect(repeats, analysis)) {
        return false;
    }
    if (repeats->at.count >= steps_min) {
        return true;
    }
    repeats->at.count = 0;
    repeats->kind = TN_REPEAT_STACK;
    if (!stacks_count(repeats, analysis->timeline)) {
        return false;
    }
    if (repeats->at.count > 0) {
        return true;
    }
    repeats->kind = TN_REPEAT_GUESSED;
    return parts_collect(repeats, analysis, PARTS_DEFAULT);
}

/* Those that were made already, if they are what is wanted: few annotated steps may not be. */
static const struct tn_repeats *repeats_made(const struct tn_analysis *analysis, uint64_t parts,
                                             size_t steps_min)
{
    const struct tn_repeats *made = analysis->repeats;

    return made && parts == 0 && (made->kind != TN_REPEAT_STEPS || made->at.count >= steps_min)
               ? made
               : NULL;
}

static bool repeats_init(struct tn_repeats *repeats, const struct tn_analysis *analysis,
                         uint64_t parts, size_t steps_min)
{
    const struct tn_repeats *made = repeats_made(analysis, parts, steps_min);

    *repeats = (struct tn_repeats){.kind = made ? made->kind : TN_REPEAT_GUESSED,
                                   .stack = made ? made->stack : 0};
    tn_vec_init(&repeats->at, sizeof(uint64_t));
    if (made ? !tn_vec_append(&repeats->at, made->at.items, made->at.count)
             : !repeats_find(repeats, analysis, parts, steps_min)) {
        tn_repeats_fini(repeats);
        return false;
    }
    repeats->found = repeats->at.count;
    return true;
}

bool tn_repeats_init(struct tn_repeats *repeats, const struct tn_analysis *analysis, uint64_t parts)
{
    if (!repeats_init(repeats, analysis, parts, TN_REPEATS_MIN)) {
        return false;
    }
    repeats_thin(repeats);
    return true;
}

bool tn_repeats_init_all(struct tn_repeats *repeats, const struct tn_analysis *analysis,
                         uint64_t parts)
{
    return repeats_init(repeats, analysis, parts, 1);
}

void tn_repeats_fini(struct tn_repeats *repeats)
{
    tn_vec_fini(&repeats->at);
}
