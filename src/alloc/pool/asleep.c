/* SPDX-License-Identifier: MIT */
#include "alloc/pool/asleep.h"

#include "alloc/pool/heap.h"
#include "alloc/pool/mapping.h"
#include "alloc/pool/segment.h"
#include "base/assertion.h"
#include "base/host_mem.h"

struct tn_asleep *tn_asleep_create(struct tarn_device *device)
{
    struct tn_asleep *asleep = tn_host_alloc_zero(sizeof *asleep);

    if (asleep) {
        tn_vec_init(&asleep->ranges, sizeof(struct tn_asleep_range));
        tn_vec_init(&asleep->loose, sizeof(struct tn_loose_page));
        tn_saved_init(&asleep->saved, device);
    }
    return asleep;
}

void tn_asleep_destroy(struct tn_asleep *asleep)
{
    tn_vec_fini(&asleep->ranges);
    tn_vec_fini(&asleep->loose);
    tn_saved_fini(&asleep->saved);
    tn_host_free(asleep, sizeof *asleep);
}

uint64_t tn_asleep_bytes(const struct tn_asleep *asleep)
{
    return asleep->away[TN_SMALL] + asleep->away[TN_LARGE];
}

/* ---- ranges ---- */

static uint64_t page_of(const struct tn_segment *segment, uint64_t address)
{
    return (address - segment->address) / segment->expandable->page_size;
}

static uint64_t page_address(const struct tn_segment *segment, uint64_t index)
{
    return segment->address + index * segment->expandable->page_size;
}

static bool segment_look(struct tn_asleep *asleep, struct tn_segment *segment, uint64_t *pages)
{
    for (const struct tn_block *block = segment->first; block; block = block->next) {
        if (!block->mapped) {
            continue;
        }
        const uint64_t begin = block->address;

        /* A segment's last block is never mapped: it has more addresses than the device memory. */
        while (tn_always(block->next) && block->next->mapped) {
            block = block->next;
        }
        const uint64_t end = block->address + block->size;
        const struct tn_asleep_range range = {
            .segment = segment, .begin = page_of(segment, begin), .end = page_of(segment, end)};

        *pages += range.end - range.begin;
        if (!tn_vec_add(&asleep->ranges, &range)) {
            return false;
        }
    }
    return true;
}

bool tn_asleep_look(struct tn_asleep *asleep, const struct tn_heap *heap,
                    const struct tn_private_pool *pool)
{
    uint64_t pages = 0;

    asleep->ranges.count = 0;
    asleep->loose.count = 0;
    for (struct tn_segment *s = tn_segment_first(heap); s; s = tn_segment_next(s)) {
        if (s->first->set->pool->owner == pool && !segment_look(asleep, s, &pages)) {
            return false;
        }
    }
    return tn_vec_reserve(&asleep->loose, (size_t)pages);
}

/* ---- contents ---- */

/* The first block that ends behind the page's beginning, from `block` on: there is one. */
static const struct tn_block *block_at(const struct tn_block *block, uint64_t address)
{
    while (tn_always(block) && block->address + block->size <= address) {
        block = block->next;
    }
    return block;
}

/* Whether something is allocated or waits on the page, in which `block` is the first. */
static bool page_is_active(const struct tn_block *block, uint64_t end)
{
    while (tn_always(block) && block->address < end && !tn_block_is_active(block)) {
        block = block->next;
    }
    return tn_always(block) && block->address < end; /* the segment goes on behind the page */
}

static bool range_plan(struct tn_asleep *asleep, const struct tn_asleep_range *range)
{
    const struct tn_segment *segment = range->segment;
    const struct tn_block *block = segment->first;
    uint64_t begin = range->begin;

    for (uint64_t i = range->begin; i <= range->end; i++) {
        block = block_at(block, page_address(segment, i));
        if (i < range->end && page_is_active(block, page_address(segment, i + 1))) {
            continue;
        }
        if (i > begin && !tn_saved_add(&asleep->saved, page_address(segment, begin),
                                       (i - begin) * segment->expandable->page_size)) {
            return false;
        }
        begin = i + 1;
    }
    return true;
}

bool tn_asleep_plan(struct tn_asleep *asleep)
{
    const struct tn_asleep_range *ranges = asleep->ranges.items;
    bool planned = true;

    for (size_t i = 0; planned && i < asleep->ranges.count; i++) {
        planned = range_plan(asleep, &ranges[i]);
    }
    return planned;
}

/* ---- counting and events ---- */

/* Counts what has gone or come back since the last count. */
static void count_away(struct tn_asleep *asleep, struct tn_heap *heap)
{
    const struct tn_asleep_range *ranges = asleep->ranges.items;
    const struct tn_pool *pools[TN_POOLS] = {NULL};
    uint64_t away[TN_POOLS] = {0};

    for (size_t i = 0; i < asleep->ranges.count; i++) {
        const struct tn_expandable *expandable = ranges[i].segment->expandable;
        const struct tn_pool *pool = ranges[i].segment->first->set->pool;
        const unsigned kind = tn_counter_pool(pool->is_small);

        pools[kind] = pool;
        for (uint64_t k = ranges[i].begin; k < ranges[i].end; k++) {
            away[kind] += expandable->pages[k] ? 0 : expandable->page_size;
        }
    }
    for (unsigned kind = 0; kind < TN_POOLS; kind++) {
        tn_assert(pools[kind] || asleep->away[kind] == 0);
        if (pools[kind]) {
            tn_heap_count_reserved(heap, pools[kind], (int64_t)(asleep->away[kind] - away[kind]));
            asleep->away[kind] = away[kind];
        }
    }
}

static void emit_all(const struct tn_asleep *asleep, struct tn_heap *heap, enum tarn_action action,
                     uint64_t stack)
{
    const struct tn_asleep_range *ranges = asleep->ranges.items;

    for (size_t i = 0; i < asleep->ranges.count; i++) {
        const struct tn_segment *segment = ranges[i].segment;
        const struct tn_free_set *set = segment->first->set;

        tn_heap_emit(heap, action, page_address(segment, ranges[i].begin),
                     (ranges[i].end - ranges[i].begin) * segment->expandable->page_size,
                     set->stream, set->pool, stack ? stack : segment->stack);
    }
}

/* ---- leaving ---- */

static void loose_add(struct tn_asleep *asleep, const struct tn_segment *segment, uint64_t index,
                      tn_page_handle page)
{
    const struct tn_loose_page loose = {.segment = segment, .index = index, .page = page};
    const bool added = tn_vec_add(&asleep->loose, &loose);

    tn_assert(added); /* there was room */
    (void)added;
}

static void loose_release(struct tn_asleep *asleep, struct tn_heap *heap)
{
    const struct tn_loose_page *loose = asleep->loose.items;

    for (size_t i = 0; i < asleep->loose.count; i++) {
        (void)heap->device->ops->page_release(heap->device, loose[i].page);
    }
    asleep->loose.count = 0;
}

/* All pages are there: the pool was awake, or has just come back. */
static enum tarn_status range_unmap(struct tn_asleep *asleep, struct tn_heap *heap,
                                    const struct tn_asleep_range *range)
{
    const struct tn_segment *segment = range->segment;
    struct tn_expandable *expandable = segment->expandable;
    const enum tarn_status st =
        heap->device->ops->unmap(heap->device, page_address(segment, range->begin),
                                 (range->end - range->begin) * expandable->page_size);

    for (uint64_t i = range->begin; st == TARN_OK && i < range->end; i++) {
        tn_assert(expandable->pages[i]);
        loose_add(asleep, segment, i, expandable->pages[i]);
        expandable->pages[i] = 0;
    }
    return st;
}

/* Maps loose pages where they belong; what cannot be mapped stays loose. False if there is any. */
static bool loose_map(struct tn_asleep *asleep, struct tn_heap *heap, enum tarn_status *status_out)
{
    struct tn_loose_page *loose = asleep->loose.items;
    size_t count = asleep->loose.count;

    *status_out = TARN_OK;
    while (count > 0 && *status_out == TARN_OK) {
        const struct tn_loose_page *page = &loose[count - 1];

        *status_out = tn_page_map(heap, page->segment, page->index, page->page);
        count -= *status_out == TARN_OK;
    }
    asleep->loose.count = count;
    return count == 0;
}

enum tarn_status tn_asleep_leave(struct tn_asleep *asleep, struct tn_heap *heap, bool or_nothing,
                                 uint64_t stack, struct tarn_error *error)
{
    const struct tn_asleep_range *ranges = asleep->ranges.items;
    enum tarn_status st = TARN_OK;

    /* Whoever registered the memory elsewhere needs the event before the address goes. */
    emit_all(asleep, heap, TARN_ACTION_SEGMENT_UNMAP, stack);
    for (size_t i = 0; st == TARN_OK && i < asleep->ranges.count; i++) {
        st = range_unmap(asleep, heap, &ranges[i]);
    }
    if (st) {
        (void)tn_heap_device_failed(heap, st, "unmapping memory", error);
        enum tarn_status mapped;

        if (or_nothing && loose_map(asleep, heap, &mapped)) {
            emit_all(asleep, heap, TARN_ACTION_SEGMENT_MAP, stack);
        }
    }
    loose_release(asleep, heap);
    count_away(asleep, heap);
    heap->shard.counters.totals.num_device_free +=
        st == TARN_OK ? (int64_t)asleep->ranges.count : 0;
    return st;
}

/* ---- coming back ---- */

static enum tarn_status page_create(struct tn_asleep *asleep, struct tn_heap *heap,
                                    const struct tn_segment *segment, uint64_t index)
{
    tn_page_handle page = 0;
    const enum tarn_status st =
        heap->device->ops->page_create(heap->device, segment->expandable->page_size, &page);

    if (st == TARN_OK) {
        loose_add(asleep, segment, index, page);
    }
    return st;
}

static enum tarn_status pages_create(struct tn_asleep *asleep, struct tn_heap *heap)
{
    const struct tn_asleep_range *ranges = asleep->ranges.items;
    enum tarn_status st = TARN_OK;

    for (size_t i = 0; st == TARN_OK && i < asleep->ranges.count; i++) {
        const struct tn_expandable *expandable = ranges[i].segment->expandable;

        for (uint64_t k = ranges[i].begin; st == TARN_OK && k < ranges[i].end; k++) {
            if (!expandable->pages[k]) {
                st = page_create(asleep, heap, ranges[i].segment, k);
            }
        }
    }
    return st;
}

/* The inverse of loose_map for pages from `first` on. A page that the device refuses to unmap stays
 * mapped, and is there. */
static void loose_unmap(struct tn_asleep *asleep, struct tn_heap *heap, size_t first, size_t end)
{
    const struct tn_loose_page *loose = asleep->loose.items;

    for (size_t i = first; i < end; i++) {
        tn_page_handle page;

        if (tn_page_unmap(heap, loose[i].segment, loose[i].index, &page) == TARN_OK) {
            (void)heap->device->ops->page_release(heap->device, page);
        }
    }
}

enum tarn_status tn_asleep_return(struct tn_asleep *asleep, struct tn_heap *heap, uint64_t stack,
                                  struct tarn_error *error)
{
    enum tarn_status st = pages_create(asleep, heap);

    if (st) {
        (void)tn_heap_device_failed(heap, st, "creating memory pages", error);
    } else {
        const size_t created = asleep->loose.count;

        if (!loose_map(asleep, heap, &st)) {
            (void)tn_heap_device_failed(heap, st, "mapping memory", error);
            loose_unmap(asleep, heap, asleep->loose.count, created);
        }
    }
    loose_release(asleep, heap);
    count_away(asleep, heap);
    if (st == TARN_OK) {
        heap->shard.counters.totals.num_device_alloc += (int64_t)asleep->ranges.count;
        emit_all(asleep, heap, TARN_ACTION_SEGMENT_MAP, stack);
    }
    return st;
}

/* ---- forgetting ---- */

static bool pages_are_away(const struct tn_segment *segment, uint64_t begin, uint64_t end)
{
    while (begin < end && !segment->expandable->pages[begin]) {
        begin++;
    }
    return begin == end;
}

static enum tarn_status block_forget(struct tn_asleep *asleep, struct tn_heap *heap,
                                     struct tn_block *block, struct tarn_error *error)
{
    struct tn_segment *segment = tn_segment_find(heap, block->address);
    const uint64_t page_size = segment->expandable->page_size;
    const uint64_t begin = tn_pages_up(block->address - segment->address, page_size);
    const uint64_t end = page_of(segment, block->address + block->size);

    if (begin >= end || !pages_are_away(segment, begin, end)) {
        return TARN_OK;
    }
    if (!tn_heap_reserve_spares(heap, &heap->shard, 2) ||
        !tn_free_set_reserve_unmapped(block->set, 1)) {
        return tn_fail_memory(error);
    }
    for (uint64_t i = begin; i < end; i++) {
        if (!tn_saved_forget(&asleep->saved, page_address(segment, i), page_size)) {
            return tn_fail_memory(error);
        }
    }
    asleep->away[tn_counter_pool(block->set->pool->is_small)] -= (end - begin) * page_size;
    (void)tn_mapping_forget(heap, segment, block, begin, end);
    return TARN_OK;
}

/* What is left of a block is smaller, so the walk does not meet it. */
static enum tarn_status blocks_forget(struct tn_asleep *asleep, struct tn_heap *heap,
                                      struct tn_pool *pool, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    struct tn_block *next;

    tn_pool_settle(pool);
    for (struct tn_block *b = tn_pool_first(pool); b && st == TARN_OK; b = next) {
        next = tn_pool_next(pool, b);
        st = block_forget(asleep, heap, b, error);
    }
    return st;
}

enum tarn_status tn_asleep_forget(struct tn_private_pool *pool, struct tn_heap *heap,
                                  struct tarn_error *error)
{
    if (pool->asleep->is_moving) {
        return TARN_OK;
    }
    const enum tarn_status st = blocks_forget(pool->asleep, heap, &pool->small, error);

    return st ? st : blocks_forget(pool->asleep, heap, &pool->large, error);
}
