/* SPDX-License-Identifier: MIT */
#include "alloc/compact/harvest.h"

#include "alloc/config/size_class.h"
#include "alloc/pool/segment.h"

/* Whole pages of a block: indices in its segment. */
struct run {
    struct tn_segment *segment;
    uint64_t begin;
    uint64_t end;
};

/* Index of the first page that may be taken: behind the place that the pages are wanted for. A
 * block overlaps that with its front or as a whole. */
static uint64_t first_page(const struct tn_harvest *harvest, const struct tn_segment *segment,
                           const struct tn_block *block)
{
    tn_assert(block->address >= segment->address && harvest->keep_begin <= harvest->keep_end);
    const bool is_kept =
        block->address < harvest->keep_end && harvest->keep_begin < block->address + block->size;
    const uint64_t from = is_kept ? harvest->keep_end : block->address;

    return tn_pages_up(from - segment->address, segment->expandable->page_size);
}

/* Whole pages from the first one that may be taken up to `end`: the last of them that are adjacent,
 * no more than wanted. Shared pages stay, and part the others into runs. */
static struct run run_below(const struct tn_harvest *harvest, struct tn_segment *segment,
                            uint64_t first, uint64_t end)
{
    const struct tn_expandable *expandable = segment->expandable;
    struct run run = {.segment = segment};

    while (end > first && tn_page_is_shared(expandable, end - 1)) {
        end--;
    }
    run.begin = end;
    run.end = end;
    while (run.begin > first && run.end - run.begin < harvest->wanted &&
           !tn_page_is_shared(expandable, run.begin - 1)) {
        run.begin--;
    }
    return run;
}

/* The last run of the block; empty if it has none. */
static struct run block_run(const struct tn_harvest *harvest, const struct tn_block *block)
{
    struct tn_segment *segment = tn_segment_find(harvest->heap, block->address);
    const uint64_t end =
        (block->address + block->size - segment->address) / segment->expandable->page_size;

    return run_below(harvest, segment, first_page(harvest, segment, block), end);
}

/* Moves the pages of a run of the block to the store. Their old addresses retire until the event is
 * done. */
static enum tarn_status run_take(struct tn_harvest *harvest, struct tn_block *block,
                                 const struct run *run, tn_event_handle event,
                                 struct tarn_error *error)
{
    struct tn_heap *heap = harvest->heap;
    const uint64_t count = run->end - run->begin;

    if (!tn_heap_reserve_spares(heap, &heap->shard, 2) ||
        !tn_free_set_reserve_unmapped(block->set, 1) || !tn_retired_reserve(harvest->retired) ||
        !tn_page_store_reserve(harvest->store, count)) {
        return tn_fail_memory(error);
    }
    tn_mapping_tell(heap, TARN_ACTION_SEGMENT_UNMAP, run->segment, block->set, run->begin, run->end,
                    harvest->stack);
    (void)tn_mapping_remove(heap, run->segment, block, run->begin, run->end);
    for (uint64_t i = run->begin; i < run->end; i++) {
        tn_page_store_put(harvest->store, run->segment->expandable->pages[i]);
        run->segment->expandable->pages[i] = 0;
    }
    tn_retired_add(harvest->retired, &(struct tn_retired_run){.segment = run->segment,
                                                              .begin = run->begin,
                                                              .end = run->end,
                                                              .event = event});
    harvest->wanted -= count;
    harvest->taken += count;
    return TARN_OK;
}

/* Takes pages of the block, run by run from the last one on. What is in front of a run stays the
 * block. */
static enum tarn_status block_take(struct tn_harvest *harvest, struct tn_block *block,
                                   tn_event_handle event, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    struct run run = block_run(harvest, block);

    while (st == TARN_OK && run.end > run.begin) {
        const bool is_front =
            run.segment->address + run.begin * run.segment->expandable->page_size == block->address;

        st = run_take(harvest, block, &run, event, error);
        if (is_front || harvest->wanted == 0) {
            break;
        }
        run = block_run(harvest, block);
    }
    return st;
}

/* Takes from the blocks of the set that became free in epochs up to `newest`, largest first. */
static enum tarn_status set_take(struct tn_harvest *harvest, struct tn_free_set *set,
                                 int64_t newest, tn_event_handle event, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    struct tn_block *before;

    for (struct tn_block *b = tn_free_set_last(set);
         st == TARN_OK && b && b->size >= TN_SMALL_BUFFER && harvest->wanted > 0; b = before) {
        before = tn_free_set_prev(set, b);
        if (b->expandable && tn_free_set_base(b) <= newest) {
            st = block_take(harvest, b, event, error);
        }
    }
    return st;
}

/* Pages of the block that may be taken, as far as they are wanted. */
static uint64_t block_pages(const struct tn_harvest *harvest, const struct tn_block *block)
{
    struct tn_segment *segment = tn_segment_find(harvest->heap, block->address);
    const uint64_t first = first_page(harvest, segment, block);
    struct run run = block_run(harvest, block);
    uint64_t pages = run.end - run.begin;

    while (run.begin > first && pages < harvest->wanted) {
        run = run_below(harvest, segment, first, run.begin);
        pages += run.end - run.begin;
    }
    return pages;
}

uint64_t tn_harvest_count(const struct tn_harvest *harvest, const struct tn_free_set *set)
{
    uint64_t pages = 0;

    for (const struct tn_block *b = tn_free_set_last(set);
         b && b->size >= TN_SMALL_BUFFER && pages < harvest->wanted; b = tn_free_set_prev(set, b)) {
        tn_assert(b->expandable); /* as all in sets of requests that pages move for */
        pages += block_pages(harvest, b);
    }
    return pages;
}

static uint64_t pool_pages(const struct tn_harvest *harvest, const struct tn_pool *pool)
{
    uint64_t pages = 0;

    for (uint32_t i = 0; i < pool->count && pages < harvest->wanted; i++) {
        pages += tn_harvest_count(harvest, pool->sets[i]);
    }
    return pages;
}

bool tn_harvest_own_suffice(const struct tn_harvest *harvest)
{
    const struct tn_private_pool *own = harvest->owner;

    return tn_private_pool_may_move(own) &&
           pool_pages(harvest, &own->large) + pool_pages(harvest, &own->small) >= harvest->wanted;
}

/* Whether a block may have whole pages, in a set that may reach their size: it has blocks. */
static bool set_has_pages(const struct tn_free_set *set)
{
    return tn_free_set_last(set)->size >= TN_SMALL_BUFFER;
}

/* Whether one of these became free after the epoch. */
static bool set_has_newer(const struct tn_free_set *set, int64_t epoch)
{
    const struct tn_block *block = tn_free_set_last(set);

    while (block && block->size >= TN_SMALL_BUFFER && tn_free_set_base(block) <= epoch) {
        block = tn_free_set_prev(set, block);
    }
    return block && block->size >= TN_SMALL_BUFFER;
}

/* Takes from a set whose work an event follows, which is recorded now. What can be had from other
 * streams only is skipped where none can be recorded: that stream may be gone. */
static enum tarn_status set_take_behind(struct tn_harvest *harvest, struct tn_free_set *set,
                                        bool wait, struct tarn_error *error)
{
    const size_t runs_before = harvest->retired->runs.count;
    tn_event_handle event = 0;
    enum tarn_status st = tn_order_record(harvest->order, set->stream, &event, wait ? NULL : error);

    if (st) {
        return wait ? TARN_OK : st;
    }
    if (wait) {
        st = tn_order_after(harvest->order, harvest->stream, event, error);
    }
    if (st == TARN_OK) {
        st = set_take(harvest, set, INT64_MAX, event, error);
    }
    if (harvest->retired->runs.count == runs_before) {
        tn_order_give(harvest->order, event);
    } else {
        struct tn_retired_run *runs = harvest->retired->runs.items;

        runs[harvest->retired->runs.count - 1].owns_event = true;
    }
    return st;
}

/* Takes what the set's stream is done with. */
static enum tarn_status set_take_done(struct tn_harvest *harvest, struct tn_free_set *set,
                                      bool may_look, struct tarn_error *error)
{
    int64_t done = tn_order_done(harvest->order, set->stream);

    if (may_look && set_has_newer(set, done)) {
        done = tn_order_poll(harvest->order, set->stream);
    }
    return set_take(harvest, set, done, 0, error);
}

static void pool_prepare(struct tn_stream_order *order, const struct tn_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        struct tn_free_set *set = pool->sets[i];

        tn_free_set_settle(set);
        if (!tn_free_set_may_reach(set, TN_SMALL_BUFFER)) {
            continue; /* most of them, with many streams */
        }
        (void)tn_order_poll(order, set->stream);
        if (set_has_newer(set, tn_order_marked(order, set->stream))) {
            tn_order_mark(order, set->stream);
        }
    }
}

void tn_harvest_prepare(const struct tn_heap *heap, struct tn_stream_order *order)
{
    pool_prepare(order, &heap->large);
    pool_prepare(order, &heap->small);
    for (const struct tn_private_pool *p = heap->private_pools.first; p; p = p->next) {
        if (tn_private_pool_may_move(p)) {
            pool_prepare(order, &p->large);
            pool_prepare(order, &p->small);
        }
    }
}

/* Whether a set of that stream is one to take from. */
static bool is_source(const struct tn_harvest *harvest, tarn_stream stream,
                      enum tn_harvest_from from)
{
    if (from == TN_HARVEST_ALL_DONE) {
        return true;
    }
    return (stream == harvest->stream) == (from == TN_HARVEST_SAME_STREAM) &&
           !(harvest->not_in_turns && tn_order_takes_turns(harvest->order, stream));
}

static enum tarn_status pool_take(struct tn_harvest *harvest, const struct tn_pool *pool,
                                  enum tn_harvest_from from, struct tarn_error *error)
{
    const bool may_look = !tn_heap_is_capturing(harvest->heap);
    enum tarn_status st = TARN_OK;

    for (uint32_t i = 0; st == TARN_OK && i < pool->count && harvest->wanted > 0; i++) {
        struct tn_free_set *set = pool->sets[i];
        const uint64_t before = harvest->taken;

        if (!tn_free_set_may_reach(set, TN_SMALL_BUFFER) ||
            !is_source(harvest, set->stream, from)) {
            continue;
        }
        if (from == TN_HARVEST_DONE || from == TN_HARVEST_ALL_DONE) {
            st = set_take_done(harvest, set, may_look, error);
        } else if (may_look && set_has_pages(set)) {
            st = set_take_behind(harvest, set, from == TN_HARVEST_ORDERED, error);
        }
        if (harvest->taken > before && (from == TN_HARVEST_DONE || from == TN_HARVEST_ORDERED)) {
            tn_order_taken(harvest->order, set->stream);
        }
    }
    return st;
}

/* Of the default pools, or of a private one. */
static enum tarn_status owner_take(struct tn_harvest *harvest, const struct tn_private_pool *owner,
                                   enum tn_harvest_from from, struct tarn_error *error)
{
    if (!tn_private_pool_may_move(owner)) {
        return TARN_OK;
    }
    const struct tn_pool *large = owner ? &owner->large : &harvest->heap->large;
    const struct tn_pool *small = owner ? &owner->small : &harvest->heap->small;
    const enum tarn_status st = pool_take(harvest, large, from, error);

    return st ? st : pool_take(harvest, small, from, error);
}

/* Steps on to the next priority that pools have; false if there is none. */
static bool priority_next(const struct tn_heap *heap, int64_t *priority)
{
    int64_t next = *priority < 0 ? 0 : INT64_MAX;

    for (const struct tn_private_pool *p = heap->private_pools.first; p; p = p->next) {
        if (p->priority > *priority && p->priority < next) {
            next = p->priority;
        }
    }
    *priority = next;
    return next < INT64_MAX;
}

/* Of pools of one priority, but not of those of the request itself. */
static enum tarn_status priority_take(struct tn_harvest *harvest, int64_t priority,
                                      enum tn_harvest_from from, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    if (harvest->owner && priority == 0) {
        st = owner_take(harvest, NULL, from, error);
    }
    for (const struct tn_private_pool *p = harvest->heap->private_pools.first; p && st == TARN_OK;
         p = p->next) {
        if (p != harvest->owner && p->priority == priority) {
            st = owner_take(harvest, p, from, error);
        }
    }
    return st;
}

enum tarn_status tn_harvest_take(struct tn_harvest *harvest, enum tn_harvest_from from,
                                 struct tarn_error *error)
{
    enum tarn_status st = owner_take(harvest, harvest->owner, from, error);
    int64_t priority = INT64_MIN;

    while (st == TARN_OK && harvest->wanted > 0 && !harvest->own_only &&
           priority_next(harvest->heap, &priority) && priority <= harvest->priority) {
        st = priority_take(harvest, priority, from, error);
    }
    return st;
}
