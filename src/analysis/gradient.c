/* SPDX-License-Identifier: MIT */
#include "analysis/gradient.h"

#include "analysis/optimizer_step.h"
#include "base/host_mem.h"
#include "base/map.h"
#include "base/order.h"

#include <string.h>

enum {
    ROUNDING =
        512 /* of blocks; old files have only rounded sizes of blocks from before the trace */
};

/* Parameters of one size. */
struct size {
    uint64_t bytes;
    uint64_t first; /* entry from which on there is one; 0: since before the trace */
    uint64_t count;
    uint64_t kept; /* blocks that may be gradients that are kept */
};

/* How well a block fits. */
enum fit {
    FIT_NONE,
    FIT_KEPT,  /* it stays over several steps, or to the end of a trace without others */
    FIT_LAST,  /* it is there in the last step, and stays */
    FIT_STEP,  /* it is gone before the next step but one */
    FIT_FREED, /* the optimizer or a zero_grad frees it */
};

/* A block that may be a gradient. */
struct candidate {
    uint64_t start;
    struct size *size; /* borrowed from the search */
    size_t step;       /* the first that begins while it is allocated */
    enum fit fit;
};

struct search {
    struct tn_gradients *gradients;
    const struct tn_timeline *timeline;
    const struct tn_optimizer_steps *steps;
    struct tn_vec sizes;      /* struct size, by bytes */
    struct tn_vec candidates; /* struct candidate, in the order of the trace */
    struct tn_map taken;      /* (size, step) + 1 -> gradients */
    bool has_freed;           /* gradients are freed from step to step */
    bool keeps;               /* gradients are kept */
};

/* ---- sizes of parameters ---- */

static int size_compare(const void *left, const void *right)
{
    const struct size *a = left;
    const struct size *b = right;
    const int order = tn_order(a->bytes, b->bytes);

    return order ? order : tn_order(a->first, b->first);
}

static bool is_parameter(struct search *search, const struct tn_lifetime *lifetime,
                         uint64_t first_step)
{
    const char *hint;
    const uint32_t category =
        tn_category_of(search->steps->categories, lifetime, first_step, false);

    return strcmp(tn_category_name(search->steps->categories, category, &hint), "parameter") == 0 &&
           (lifetime->start == TN_NEVER || lifetime->stack != TN_STACK_EMPTY);
}

/* Sorted, so that equal sizes follow each other and the first of them is the earliest. */
static void sizes_merge(struct tn_vec *sizes)
{
    struct size *items = sizes->items;
    size_t kept = 0;

    tn_vec_sort(sizes, size_compare);
    for (size_t i = 1; items && i < sizes->count; i++) {
        if (items[i].bytes == items[kept].bytes) {
            items[kept].count++;
        } else {
            items[++kept] = items[i];
        }
    }
    sizes->count = sizes->count > 0 ? kept + 1 : 0;
}

static bool sizes_collect(struct search *search, uint64_t first_step)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(search->timeline);

    for (size_t i = 0; i < search->timeline->lifetimes.count; i++) {
        const uint64_t start = lifetimes[i].start;
        const struct size size = {
            .bytes = lifetimes[i].size, .first = start == TN_NEVER ? 0 : start + 1, .count = 1};

        if (size.bytes > 0 && is_parameter(search, &lifetimes[i], first_step) &&
            !tn_vec_add(&search->sizes, &size)) {
            return false;
        }
    }
    sizes_merge(&search->sizes);
    return true;
}

static struct size *size_find_exact(const struct search *search, uint64_t bytes)
{
    struct size *sizes = search->sizes.items;
    size_t low = 0;
    size_t high = search->sizes.count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (sizes[middle].bytes < bytes) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < search->sizes.count && sizes[low].bytes == bytes ? &sizes[low] : NULL;
}

/* The parameters that a block may be a gradient of, or NULL. */
static struct size *size_find(const struct search *search, const struct tn_lifetime *lifetime)
{
    const uint64_t rounded = (lifetime->size + ROUNDING - 1) / ROUNDING * ROUNDING;
    struct size *size = size_find_exact(search, lifetime->size);

    if (!size) {
        size = size_find_exact(search, rounded);
        return size && size->first == 0 ? size : NULL;
    }
    return size->first <= lifetime->start ? size : NULL;
}

/* ---- blocks ---- */

/* The steps that begin while the block is allocated: `first_out` is the first of them. */
static size_t steps_of(const struct search *search, const struct tn_lifetime *lifetime,
                       size_t *first_out)
{
    const uint64_t end = lifetime->requested != TN_NEVER ? lifetime->requested : lifetime->end;

    *first_out = tn_optimizer_steps_before(search->steps, lifetime->start);
    const size_t after = end == TN_NEVER ? search->steps->begins.count
                                         : tn_optimizer_steps_before(search->steps, end + 1);

    return after > *first_out ? after - *first_out : 0;
}

static enum fit fit_of(const struct search *search, const struct tn_lifetime *lifetime,
                       size_t *step_out)
{
    const size_t steps = steps_of(search, lifetime, step_out);
    const bool stays = lifetime->requested == TN_NEVER && lifetime->end == TN_NEVER;

    if (lifetime->requested != TN_NEVER &&
        tn_optimizer_steps_has(search->steps, lifetime->requested)) {
        return FIT_FREED;
    }
    if (steps == 0) {
        return FIT_NONE;
    }
    if (steps == 1) {
        return stays ? FIT_LAST : FIT_STEP;
    }
    return FIT_KEPT;
}

static bool candidates_collect(struct search *search)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(search->timeline);
    bool good = true;

    for (size_t i = 0; good && i < search->timeline->lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = &lifetimes[i];
        struct candidate candidate = {.start = lifetime->start};

        if (lifetime->start == TN_NEVER || lifetime->stack != TN_STACK_EMPTY) {
            continue;
        }
        candidate.size = size_find(search, lifetime);
        if (candidate.size) {
            candidate.fit = fit_of(search, lifetime, &candidate.step);
        }
        good = candidate.fit == FIT_NONE || tn_vec_add(&search->candidates, &candidate);
    }
    return good;
}

/* Counts a gradient of the step; false when it has as many of that size as there are parameters.
 * `*good` becomes false when host memory is missing. */
static bool gradient_count(struct search *search, const struct size *size, size_t step,
                           bool is_limited, bool *good)
{
    const uint64_t number = (uint64_t)(size - (const struct size *)search->sizes.items);
    const uint64_t key = (number << 32 | (uint32_t)step) + 1;
    uint64_t *count = tn_map_find(&search->taken, key);

    if (count) {
        if (is_limited && *count >= size->count) {
            return false;
        }
        (*count)++;
        return true;
    }
    *good = tn_map_reserve(&search->taken, 1);
    if (*good) {
        tn_map_insert(&search->taken, key, 1);
    }
    return *good;
}

/* Takes blocks that fit as well as that. */
static bool blocks_take(struct search *search, enum fit wanted)
{
    const struct candidate *candidates = search->candidates.items;
    bool good = true;

    for (size_t i = 0; good && i < search->candidates.count; i++) {
        const uint64_t start = candidates[i].start;

        if (candidates[i].fit == wanted &&
            gradient_count(search, candidates[i].size, search->has_freed ? candidates[i].step : 0,
                           wanted != FIT_FREED, &good)) {
            search->gradients->of_entry[start / 8] |= (uint8_t)(1U << (start % 8));
        }
    }
    return good;
}

/* Whether gradients are freed from step to step and, if not, whether they are kept. */
static void habit_find(struct search *search)
{
    const struct candidate *candidates = search->candidates.items;
    const struct size *sizes = search->sizes.items;
    uint64_t all = 0;
    uint64_t kept = 0;

    for (size_t i = 0; i < search->candidates.count; i++) {
        const enum fit fit = candidates[i].fit;

        search->has_freed |= fit == FIT_FREED || fit == FIT_STEP;
        candidates[i].size->kept += fit == FIT_KEPT || fit == FIT_LAST;
    }
    for (size_t i = 0; i < search->sizes.count; i++) {
        all += sizes[i].bytes * sizes[i].count;
        kept += sizes[i].bytes * (sizes[i].kept < sizes[i].count ? sizes[i].kept : sizes[i].count);
    }
    search->keeps = kept > 0 && kept >= all - kept;
}

static bool search_run(struct search *search, uint64_t first_step)
{
    if (!sizes_collect(search, first_step) || !candidates_collect(search)) {
        return false;
    }
    habit_find(search);
    if (!search->has_freed && !search->keeps) {
        return true;
    }
    search->gradients->entries = search->timeline->trace->count;
    search->gradients->of_entry = tn_host_alloc_zero((size_t)(search->gradients->entries / 8 + 1));
    return search->gradients->of_entry && blocks_take(search, FIT_FREED) &&
           blocks_take(search, FIT_STEP) && blocks_take(search, FIT_LAST) &&
           (search->has_freed || blocks_take(search, FIT_KEPT));
}

/* The optimizer runs in the trace. */
static bool gradients_find(struct tn_gradients *gradients, const struct tn_timeline *timeline,
                           const struct tn_optimizer_steps *steps, uint64_t first_step)
{
    struct search search = {.gradients = gradients, .timeline = timeline, .steps = steps};

    tn_vec_init(&search.sizes, sizeof(struct size));
    tn_vec_init(&search.candidates, sizeof(struct candidate));
    const bool good = search_run(&search, first_step);

    if (!good) {
        tn_gradients_fini(gradients);
    }
    tn_map_fini(&search.taken);
    tn_vec_fini(&search.candidates);
    tn_vec_fini(&search.sizes);
    return good;
}

bool tn_gradients_init(struct tn_gradients *gradients, const struct tn_timeline *timeline,
                       const struct tn_phases *phases, struct tn_categories *categories,
                       uint64_t first_step)
{
    struct tn_optimizer_steps steps;

    *gradients = (struct tn_gradients){0};
    if (timeline->empty_stacks == 0) {
        return true;
    }
    const bool good =
        tn_optimizer_steps_init(&steps, phases, categories) &&
        (steps.begins.count == 0 || gradients_find(gradients, timeline, &steps, first_step));

    tn_optimizer_steps_fini(&steps);
    return good;
}

/* Without the lifetimes, which most of the time goes into, when the optimizer does not run. */
bool tn_gradients_init_trace(struct tn_gradients *gradients, const struct tn_model *model,
                             size_t device, struct tn_categories *categories, uint64_t first_step)
{
    const struct tn_trace_source source = tn_source_of_device(model, device);
    const struct tn_timeline bare = {
        .model = model, .trace = source.trace, .device = (int64_t)source.device};
    struct tn_timeline timeline;
    struct tn_phases phases;
    struct tn_optimizer_steps steps;

    *gradients = (struct tn_gradients){0};
    if (!tn_phases_init(&phases, &bare)) {
        return false;
    }
    bool good = tn_optimizer_steps_init(&steps, &phases, categories);

    if (good && steps.begins.count > 0) {
        good = tn_timeline_init_lifetimes(&timeline, model, device);
        if (good) {
            good = gradients_find(gradients, &timeline, &steps, first_step);
            tn_timeline_fini(&timeline);
        }
    }
    tn_optimizer_steps_fini(&steps);
    tn_phases_fini(&phases);
    return good;
}

void tn_gradients_fini(struct tn_gradients *gradients)
{
    tn_host_free(gradients->of_entry, (size_t)(gradients->entries / 8 + 1));
    *gradients = (struct tn_gradients){0};
}
