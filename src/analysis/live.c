/* SPDX-License-Identifier: MIT */
#include "analysis/live.h"

#include "base/order.h"

/* Times are numbers of entries plus one, so that 0 is before the first, and blocks from before the
 * trace, which begin there, need no case of their own. */
struct tn_live_set {
    uint64_t time;
    struct tn_vec blocks; /* const struct tn_lifetime * */
};

/* TN_NEVER is before the first. */
static uint64_t time_of(uint64_t entry)
{
    return entry + 1;
}

static bool block_add(struct tn_vec *blocks, const struct tn_lifetime *block)
{
    if (blocks->count == blocks->capacity && !tn_vec_reserve(blocks, 1)) {
        return false;
    }
    ((const struct tn_lifetime **)blocks->items)[blocks->count++] = block;
    return true;
}

/* Adds a block to the sets from number `first` on, before which it is not allocated. */
static bool sets_add(struct tn_live_set *sets, size_t count, size_t first,
                     const struct tn_lifetime *block)
{
    for (size_t i = first; i < count && sets[i].time <= block->end; i++) {
        if (!block_add(&sets[i].blocks, block)) {
            return false;
        }
    }
    return true;
}

/* Blocks that the trace allocates come in the order of their allocations. */
static bool sets_fill(struct tn_live_set *sets, size_t count, const struct tn_timeline *timeline)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    uint64_t before = timeline->before_count;
    size_t next = 0; /* the first set that is not before the last allocation */

    for (size_t i = 0; i < timeline->lifetimes.count && (next < count || before > 0); i++) {
        const struct tn_lifetime *block = &lifetimes[i];
        const uint64_t start = time_of(block->start);

        while (next < count && sets[next].time < start) {
            next++;
        }
        before -= start == 0;
        if (!sets_add(sets, count, start == 0 ? 0 : next, block)) {
            return false;
        }
    }
    return true;
}

/* ---- one entry ---- */

static const struct tn_live_set *set_find(const struct tn_live_sets *made, uint64_t time)
{
    const struct tn_live_set *sets = made ? made->sets.items : NULL;

    for (size_t i = 0; made && i < made->sets.count; i++) {
        if (sets[i].time == time) {
            return &sets[i];
        }
    }
    return NULL;
}

static void live_borrow(struct tn_live *live, const struct tn_vec *blocks)
{
    live->blocks = blocks->items;
    live->count = blocks->count;
}

bool tn_live_init(struct tn_live *live, const struct tn_timeline *timeline, uint64_t entry)
{
    const struct tn_live_set *made = set_find(timeline->live, time_of(entry));
    struct tn_live_set set = {.time = time_of(entry)};

    tn_vec_init(&set.blocks, sizeof(const struct tn_lifetime *));
    *live = (struct tn_live){.own = set.blocks};
    if (made) {
        live_borrow(live, &made->blocks);
        return true;
    }
    const bool good = sets_fill(&set, 1, timeline);

    live->own = set.blocks;
    live_borrow(live, &live->own);
    if (!good) {
        tn_live_fini(live);
    }
    return good;
}

void tn_live_fini(struct tn_live *live)
{
    tn_vec_fini(&live->own);
}

/* ---- several ---- */

static int set_compare(const void *left, const void *right)
{
    const struct tn_live_set *a = left;
    const struct tn_live_set *b = right;

    return tn_order(a->time, b->time);
}

static bool set_add(struct tn_live_sets *sets, uint64_t time)
{
    struct tn_live_set set = {.time = time};

    tn_vec_init(&set.blocks, sizeof(const struct tn_lifetime *));
    return set_find(sets, time) || tn_vec_add(&sets->sets, &set);
}

bool tn_live_sets_init(struct tn_live_sets *sets, const struct tn_timeline *timeline,
                       const uint64_t *entries, size_t count)
{
    bool good = true;

    tn_vec_init(&sets->sets, sizeof(struct tn_live_set));
    for (size_t i = 0; i < count && good; i++) {
        good = set_add(sets, time_of(entries[i]));
    }
    tn_vec_sort(&sets->sets, set_compare);
    good = good && sets_fill(sets->sets.items, sets->sets.count, timeline);
    if (!good) {
        tn_live_sets_fini(sets);
    }
    return good;
}

void tn_live_sets_fini(struct tn_live_sets *sets)
{
    struct tn_live_set *items = sets->sets.items;

    for (size_t i = 0; i < sets->sets.count; i++) {
        tn_vec_fini(&items[i].blocks);
    }
    tn_vec_fini(&sets->sets);
}
