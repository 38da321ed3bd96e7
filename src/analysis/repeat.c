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
        const uint64_t part = length / count * i + length % count * i / count; /* at least 1 */
        const uint64_t at = analysis->timeline->first + part - 1;

        if (!tn_vec_append(&repeats->at, &at, 1)) {
            return false;
        }
    }
    return true;
}

/* ---- stacks that repeat ---- */

/* The calls of each stack, its allocations, as a list from the last to the first. */
struct calls {
    const struct tn_timeline *timeline;
    uint32_t *counts; /* of a stack */
    size_t *last;     /* of a stack: lifetime of its last call, plus one */
    size_t *before;   /* of a lifetime: that of the call before with the same stack, plus one */
};

static size_t stack_count(const struct calls *calls)
{
    return (size_t)calls->timeline->model->stacks.count + 1;
}

static void calls_read(struct calls *calls)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(calls->timeline);

    for (size_t i = 0; i < calls->timeline->lifetimes.count; i++) {
        const uint32_t stack = lifetimes[i].stack;

        if (lifetimes[i].start != TN_NEVER) {
            calls->counts[stack]++;
            calls->before[i] = calls->last[stack];
            calls->last[stack] = i + 1;
        }
    }
}

static bool calls_init(struct calls *calls, const struct tn_timeline *timeline)
{
    *calls = (struct calls){.timeline = timeline};
    calls->counts = tn_host_alloc_zero(stack_count(calls) * sizeof *calls->counts);
    calls->last = tn_host_alloc_zero(stack_count(calls) * sizeof *calls->last);
    calls->before = tn_host_alloc((timeline->lifetimes.count + 1) * sizeof *calls->before);
    if (!calls->counts || !calls->last || !calls->before) {
        return false;
    }
    calls_read(calls);
    return true;
}

static void calls_fini(struct calls *calls)
{
    tn_host_free(calls->before, (calls->timeline->lifetimes.count + 1) * sizeof *calls->before);
    tn_host_free(calls->last, stack_count(calls) * sizeof *calls->last);
    tn_host_free(calls->counts, stack_count(calls) * sizeof *calls->counts);
}

/* The entries of all calls of a stack, in order. */
static void calls_list(const struct calls *calls, uint32_t stack, uint64_t entries_out[COUNT_MAX])
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(calls->timeline);
    size_t call = calls->last[stack];

    for (uint32_t i = calls->counts[stack]; i > 0; i--) {
        entries_out[i - 1] = lifetimes[call - 1].start;
        call = calls->before[call - 1];
    }
}

/* Whether calls come at even distances, from near the beginning to near the end. */
static bool is_even(const uint64_t *calls, size_t count, const struct tn_timeline *timeline)
{
    uint64_t distances[COUNT_MAX];
    uint64_t least = UINT64_MAX;
    uint64_t most = 0;

    for (size_t i = 0; i + 1 < count; i++) {
        distances[i] = calls[i + 1] - calls[i];
        least = distances[i] < least ? distances[i] : least;
        most = distances[i] > most ? distances[i] : most;
    }
    if (most / ALIKE / ALIKE > least) {
        return false; /* as most, and needs no sorting */
    }
    qsort(distances, count - 1, sizeof distances[0], tn_order_numbers);
    const uint64_t middle = distances[(count - 1) / 2];

    return least * ALIKE >= middle && most <= middle * ALIKE &&
           calls[0] - timeline->first <= middle * ALIKE &&
           timeline->limit - calls[count - 1] <= middle * ALIKE;
}

/* Takes the calls of the first stack with so many of them that tells steps, if there is one: of
 * those that counts_rank counts. False when host memory is missing. */
static bool even_take(struct tn_repeats *repeats, const struct calls *calls, uint32_t count)
{
    uint64_t entries[COUNT_MAX];

    for (uint32_t i = TN_STACK_EMPTY + 1; i < stack_count(calls) && repeats->at.count == 0; i++) {
        if (calls->counts[i] != count) {
            continue;
        }
        calls_list(calls, i, entries);
        if (is_even(entries, count, calls->timeline)) {
            repeats->stack = i;
            if (!tn_vec_append(&repeats->at, entries, count)) {
                return false;
            }
        }
    }
    return true;
}

/* How many stacks were called so many times; two at least must agree. */
static void counts_rank(const struct calls *calls, uint32_t stacks_of[COUNT_MAX + 1])
{
    for (uint32_t i = TN_STACK_EMPTY + 1; i < calls->timeline->model->stacks.count; i++) {
        if (calls->counts[i] >= TN_REPEATS_MIN && calls->counts[i] <= COUNT_MAX) {
            stacks_of[calls->counts[i]]++;
        }
    }
}

static bool stack_collect(struct tn_repeats *repeats, const struct tn_timeline *timeline)
{
    uint32_t stacks_of[COUNT_MAX + 1] = {0};
    struct calls calls;
    unsigned candidates = 0;
    bool good = calls_init(&calls, timeline);

    if (good) {
        counts_rank(&calls, stacks_of);
    }
    for (uint32_t i = TN_REPEATS_MIN;
         good && i <= COUNT_MAX && candidates < CANDIDATES_MAX && repeats->at.count == 0; i++) {
        if (stacks_of[i] >= 2) {
            candidates++;
            good = even_take(repeats, &calls, i);
        }
    }
    calls_fini(&calls);
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
    if (!stack_collect(repeats, analysis->timeline)) {
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
