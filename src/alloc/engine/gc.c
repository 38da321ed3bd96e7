/* SPDX-License-Identifier: MIT */
#include "alloc/engine/gc.h"

#include "alloc/engine/engine.h"
#include "alloc/pool/asleep.h"
#include "alloc/pool/growth.h"
#include "alloc/pool/segment.h"
#include "base/assertion.h"

/* Whether the free block is a whole segment, which can be released at once. A part cannot, even if
 * it is oversize: max_split_size may have been larger when the segment was split. */
static bool block_is_collectable(const struct tn_block *block)
{
    return !tn_block_is_split(block) && !block->expandable;
}

/* Searches in the block's pool since it became free. */
static double block_age(const struct tn_block *block)
{
    return (double)(block->set->pool->find_count - tn_free_set_base(block));
}

/* The blocks that garbage collection may still release, and the bytes it has released. */
struct collection {
    double total_age;
    uint64_t count;     /* blocks */
    uint64_t reclaimed; /* bytes */
};

/* Releases every block of at least that age. Like PyTorch, does not stop when enough is
 * released. */
static enum tarn_status gc_pass(struct tn_engine *engine, struct collection *collection,
                                double threshold, uint64_t stack, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    struct tn_block *next;

    for (struct tn_block *b = tn_pool_first(&engine->heap.large); b && st == TARN_OK; b = next) {
        const uint64_t size = b->size;
        const double age = block_age(b);

        next = tn_pool_next(&engine->heap.large, b);
        if (block_is_collectable(b) && age >= threshold) {
            st = tn_segment_release(&engine->heap, b, stack, error);
            collection->reclaimed += size;
            collection->total_age -= age;
            collection->count--;
        }
    }
    return st;
}

enum tarn_status tn_gc_collect(struct tn_engine *engine, uint64_t stack, struct tarn_error *error)
{
    const uint64_t keep =
        (uint64_t)(engine->heap.config.garbage_collection_threshold * (double)engine->heap.limit);
    struct collection collection = {0};
    enum tarn_status st = TARN_OK;

    if (engine->heap.reserved <= keep) {
        return TARN_OK;
    }
    const uint64_t target = engine->heap.reserved - keep;

    for (const struct tn_block *b = tn_pool_first(&engine->heap.large); b;
         b = tn_pool_next(&engine->heap.large, b)) {
        if (block_is_collectable(b)) {
            collection.total_age += block_age(b);
            collection.count++;
        }
    }
    while (st == TARN_OK && collection.count > 0 && collection.reclaimed < target) {
        const uint64_t before = collection.count;

        st = gc_pass(engine, &collection, collection.total_age / (double)before, stack, error);
        if (tn_never(collection.count == before)) {
            break; /* one at least is as old as the average, while 2^53 holds the sum of the ages */
        }
    }
    return st;
}

/* Releases oversize blocks, from `block` down in the order of the set, until their sum is
 * `size`. */
static enum tarn_status release_largest(struct tn_engine *engine, struct tn_free_set *set,
                                        struct tn_block *block, uint64_t size, uint64_t stack,
                                        bool *released_out, struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    uint64_t total = 0;

    while (st == TARN_OK && block && total < size &&
           block->size >= engine->heap.config.max_split_size) {
        struct tn_block *before = tn_free_set_prev(set, block);
        const uint64_t block_size = block->size;

        if (block_is_collectable(block)) {
            st = tn_segment_release(&engine->heap, block, stack, error);
            total += block_size;
        }
        block = before;
    }
    *released_out = st == TARN_OK && total >= size;
    return st;
}

enum tarn_status tn_gc_release_oversize(struct tn_engine *engine, struct tn_free_set *set,
                                        uint64_t size, uint64_t stack, bool *released_out,
                                        struct tarn_error *error)
{
    const uint64_t max_split = engine->heap.config.max_split_size;

    *released_out = false;
    if (max_split == TARN_SIZE_UNLIMITED) {
        return TARN_OK;
    }
    const uint64_t wanted = size > max_split ? size : max_split;
    struct tn_block *block = tn_free_set_find(set, wanted);

    if (block && block_is_collectable(block)) {
        *released_out = true;
        return tn_segment_release(&engine->heap, block, stack, error);
    }
    /* PyTorch continues below the block found, even if larger ones could be released. */
    block = block ? tn_free_set_prev(set, block) : tn_free_set_last(set);
    return release_largest(engine, set, block, wanted, stack, released_out, error);
}

/* Releases the pool's unsplit plain blocks. */
static enum tarn_status pool_release(struct tn_engine *engine, struct tn_pool *pool, uint64_t stack,
                                     struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    struct tn_block *next;

    for (struct tn_block *b = tn_pool_first(pool); b && st == TARN_OK; b = next) {
        next = tn_pool_next(pool, b);
        if (block_is_collectable(b)) {
            st = tn_segment_release(&engine->heap, b, stack, error);
        }
    }
    return st;
}

/* First block of an expandable segment from `from` on, in the order of the pool. */
static struct tn_block *pool_next_expandable(const struct tn_pool *pool, struct tn_block *from)
{
    while (from && !from->expandable) {
        from = tn_pool_next(pool, from);
    }
    return from;
}

/* Unmaps free pages block by block. Unmapping only turns a block into smaller ones, which come
 * before `next` in the order of the pool, so the walk does not meet them. */
static enum tarn_status pool_unmap(struct tn_engine *engine, struct tn_pool *pool, uint64_t stack,
                                   struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    struct tn_block *block = pool_next_expandable(pool, tn_pool_first(pool));

    while (block && st == TARN_OK) {
        struct tn_block *next = pool_next_expandable(pool, tn_pool_next(pool, block));

        st = tn_expandable_unmap(&engine->heap, block, UINT64_MAX, stack, error);
        block = next;
    }
    return st;
}

/* Plain blocks first, as in PyTorch; unmapping inserts new free blocks. */
static enum tarn_status pool_release_all(struct tn_engine *engine, struct tn_pool *pool,
                                         uint64_t stack, struct tarn_error *error)
{
    tn_pool_settle(pool);
    const enum tarn_status st = pool_release(engine, pool, stack, error);

    return st ? st : pool_unmap(engine, pool, stack, error);
}

/* Of one pool, NULL: of all. */
static enum tarn_status wait_for_frees(struct tn_engine *engine, const struct tn_private_pool *pool,
                                       uint64_t stack, struct tarn_error *error)
{
    engine->heap.shard.counters.totals.num_sync_all_streams++;
    return tn_stream_waits_drain(&engine->waits, pool, stack, error);
}

static enum tarn_status release_default_pools(struct tn_engine *engine, uint64_t stack,
                                              struct tarn_error *error)
{
    enum tarn_status st = wait_for_frees(engine, NULL, stack, error);

    if (st == TARN_OK) {
        st = pool_release_all(engine, &engine->heap.large, stack, error);
    }
    return st ? st : pool_release_all(engine, &engine->heap.small, stack, error);
}

static enum tarn_status release_private_pool(struct tn_engine *engine, struct tn_private_pool *pool,
                                             uint64_t stack, struct tarn_error *error)
{
    enum tarn_status st;

    if (pool->sleeps) {
        st = tn_asleep_forget(pool, &engine->heap, error);
    } else {
        st = pool_release_all(engine, &pool->small, stack, error);
        st = st ? st : pool_release_all(engine, &pool->large, stack, error);
    }
    if (st || !pool->freeable) {
        return st;
    }
    st = tn_expandable_drop_empty(&engine->heap, pool, error);
    if (st == TARN_OK) {
        (void)tn_private_pool_drop(&engine->heap.private_pools, pool);
    }
    return st;
}

/* Under the compact policy pages that moved may still be mapped at an old address as well: then
 * giving them back would not free them. No graph is captured. */
static enum tarn_status settle(struct tn_engine *engine, struct tarn_error *error)
{
    return tn_compact_is_on(&engine->heap) ? tn_compact_settle(&engine->compact, error) : TARN_OK;
}

/* Of the pool with that id; {0, 0}: of the default pools and all others, unless an open pool has a
 * higher priority. */
static enum tarn_status release_cached(struct tn_engine *engine, struct tarn_pool_id id,
                                       int64_t priority, uint64_t stack, struct tarn_error *error)
{
    const bool everything = id.first == 0 && id.second == 0;
    enum tarn_status st = TARN_OK;
    struct tn_private_pool *next;

    if (tn_compact_is_on(&engine->heap)) {
        if (tn_compact_must_stay(&engine->compact)) {
            return TARN_OK;
        }
        st = tn_compact_settle(&engine->compact, error);
    }
    if (st == TARN_OK && everything && priority >= 0 && !tn_heap_is_capturing(&engine->heap)) {
        st = release_default_pools(engine, stack, error);
    }
    for (struct tn_private_pool *p = engine->heap.private_pools.first; p && st == TARN_OK;
         p = next) {
        next = p->next;
        if (!tn_private_pool_may_shrink(p) ||
            (p->open && (p->priority > priority || tn_heap_is_capturing(&engine->heap)))) {
            continue;
        }
        if (!everything) {
            if (p->id.first != id.first || p->id.second != id.second) {
                continue;
            }
            if (!tn_heap_is_capturing(&engine->heap)) {
                st = wait_for_frees(engine, p, stack, error);
            }
        }
        if (st == TARN_OK) {
            st = release_private_pool(engine, p, stack, error);
        }
    }
    return st;
}

enum tarn_status tn_gc_release_cached(struct tn_engine *engine, struct tarn_pool_id id,
                                      uint64_t stack, struct tarn_error *error)
{
    return release_cached(engine, id, INT64_MAX, stack, error);
}

enum tarn_status tn_gc_release_cached_for(struct tn_engine *engine, int64_t priority,
                                          uint64_t stack, struct tarn_error *error)
{
    return release_cached(engine, (struct tarn_pool_id){0, 0}, priority < 0 ? priority : 0, stack,
                          error);
}

/* ---- open pools, by priority ---- */

bool tn_gc_next_priority(const struct tn_engine *engine, int64_t *priority_in_out)
{
    int64_t next = INT64_MAX;

    for (const struct tn_private_pool *p = engine->heap.private_pools.first; p; p = p->next) {
        if (p->open && p->priority > *priority_in_out && p->priority < next) {
            next = p->priority;
        }
    }
    *priority_in_out = next;
    return next < INT64_MAX;
}

enum tarn_status tn_gc_release_priority(struct tn_engine *engine, int64_t priority, uint64_t stack,
                                        bool *released_out, struct tarn_error *error)
{
    const uint64_t before = engine->heap.reserved;
    enum tarn_status st = settle(engine, error);

    for (struct tn_private_pool *p = engine->heap.private_pools.first; p && st == TARN_OK;
         p = p->next) {
        if (p->open && p->priority == priority) {
            st = release_private_pool(engine, p, stack, error);
        }
    }
    *released_out = engine->heap.reserved < before;
    return st;
}

/* ---- pages that other processes were given ---- */

static bool block_has_shared(const struct tn_heap *heap, const struct tn_block *block)
{
    const struct tn_segment *segment = tn_segment_find(heap, block->address);
    const uint64_t page_size = segment->expandable->page_size;
    const uint64_t end = (block->address + block->size - segment->address) / page_size;
    uint64_t at = tn_pages_up(block->address - segment->address, page_size);

    while (at < end && !tn_page_is_shared(segment->expandable, at)) {
        at++;
    }
    return at < end;
}

/* ---- to a target ---- */

struct trim {
    struct tn_engine *engine;
    const uint64_t *reserved; /* this is to reach the target */
    uint64_t target;
    bool only_shared; /* only blocks with pages that other processes were given, whole */
    uint64_t stack;
};

static enum tarn_status block_trim(const struct trim *trim, struct tn_block *block,
                                   struct tarn_error *error)
{
    struct tn_heap *heap = &trim->engine->heap;

    if (trim->only_shared) {
        return block->expandable && block_has_shared(heap, block)
                   ? tn_expandable_unmap(heap, block, UINT64_MAX, trim->stack, error)
                   : TARN_OK;
    }
    if (block_is_collectable(block)) {
        return tn_segment_release(heap, block, trim->stack, error);
    }
    return block->expandable ? tn_expandable_unmap(heap, block, *trim->reserved - trim->target,
                                                   trim->stack, error)
                             : TARN_OK;
}

/* Gives free blocks of the set back, the largest first. Unmapping only turns a block into smaller
 * ones without whole pages, so the walk need not meet them. */
static enum tarn_status set_trim(const struct trim *trim, struct tn_free_set *set,
                                 struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;
    struct tn_block *before;

    tn_free_set_settle(set);
    for (struct tn_block *b = tn_free_set_last(set);
         b && st == TARN_OK && *trim->reserved > trim->target; b = before) {
        before = tn_free_set_prev(set, b);
        st = block_trim(trim, b, error);
    }
    return st;
}

static enum tarn_status pool_trim(const struct trim *trim, struct tn_pool *pool,
                                  struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (uint32_t i = 0; i < pool->count && st == TARN_OK; i++) {
        st = set_trim(trim, pool->sets[i], error);
    }
    return st;
}

static enum tarn_status default_pools_trim(const struct trim *trim, struct tarn_error *error)
{
    struct tn_heap *heap = &trim->engine->heap;
    const enum tarn_status st = pool_trim(trim, &heap->large, error);

    return st ? st : pool_trim(trim, &heap->small, error);
}

/* Of one that sleeps nothing is there. */
static enum tarn_status private_pool_trim(const struct trim *trim, struct tn_private_pool *pool,
                                          struct tarn_error *error)
{
    if (pool->sleeps) {
        return TARN_OK;
    }
    const enum tarn_status st = pool_trim(trim, &pool->large, error);

    return st ? st : pool_trim(trim, &pool->small, error);
}

enum tarn_status tn_gc_release_shared(struct tn_engine *engine, int64_t priority, uint64_t bytes,
                                      uint64_t stack, bool *released_out, struct tarn_error *error)
{
    struct tn_heap *heap = &engine->heap;
    const uint64_t reserved = heap->reserved;
    const struct trim trim = {.engine = engine,
                              .reserved = &heap->reserved,
                              .target = bytes < reserved ? reserved - bytes : 0,
                              .only_shared = true,
                              .stack = stack};
    enum tarn_status st = priority >= 0 ? default_pools_trim(&trim, error) : TARN_OK;

    for (struct tn_private_pool *p = heap->private_pools.first; p && st == TARN_OK; p = p->next) {
        if (tn_private_pool_may_move(p) && p->priority <= priority) {
            st = private_pool_trim(&trim, p, error);
        }
    }
    *released_out = heap->reserved < reserved;
    return st;
}

enum tarn_status tn_gc_trim_pool(struct tn_engine *engine, struct tn_private_pool *pool,
                                 uint64_t target, uint64_t stack, struct tarn_error *error)
{
    const struct trim trim = {
        .engine = engine, .reserved = &pool->reserved, .target = target, .stack = stack};
    enum tarn_status st;

    if (pool->reserved <= target || !tn_private_pool_may_shrink(pool) ||
        tn_heap_is_capturing(&engine->heap)) {
        return TARN_OK;
    }
    st = settle(engine, error);
    st = st ? st : private_pool_trim(&trim, pool, error);
    if (st == TARN_OK && pool->reserved > target) {
        st = wait_for_frees(engine, pool, stack, error);
        st = st ? st : private_pool_trim(&trim, pool, error);
    }
    return st;
}

static enum tarn_status pool_release_stream(struct tn_engine *engine, struct tn_pool *pool,
                                            tarn_stream stream, uint64_t stack,
                                            struct tarn_error *error)
{
    const struct trim trim = {
        .engine = engine, .reserved = &engine->heap.reserved, .target = 0, .stack = stack};
    enum tarn_status st = TARN_OK;

    for (uint32_t i = 0; i < pool->count && st == TARN_OK; i++) {
        if (pool->sets[i]->stream == stream) {
            st = set_trim(&trim, pool->sets[i], error);
        }
    }
    return st;
}

enum tarn_status tn_gc_release_stream(struct tn_engine *engine, tarn_stream stream, uint64_t stack,
                                      struct tarn_error *error)
{
    struct tn_heap *heap = &engine->heap;
    enum tarn_status st;

    if (tn_heap_is_capturing(heap)) {
        return TARN_OK;
    }
    st = settle(engine, error);
    st = st ? st : wait_for_frees(engine, NULL, stack, error);
    st = st ? st : pool_release_stream(engine, &heap->large, stream, stack, error);
    st = st ? st : pool_release_stream(engine, &heap->small, stream, stack, error);
    for (struct tn_private_pool *p = heap->private_pools.first; p && st == TARN_OK; p = p->next) {
        if (tn_private_pool_may_shrink(p) && !p->sleeps) {
            st = pool_release_stream(engine, &p->large, stream, stack, error);
            st = st ? st : pool_release_stream(engine, &p->small, stream, stack, error);
        }
    }
    return st;
}

enum tarn_status tn_gc_trim(struct tn_engine *engine, uint64_t target, uint64_t stack,
                            struct tarn_error *error)
{
    const struct tn_heap *heap = &engine->heap;
    const struct trim trim = {
        .engine = engine, .reserved = &heap->reserved, .target = target, .stack = stack};
    enum tarn_status st;

    if (heap->reserved <= target || tn_heap_is_capturing(heap)) {
        return TARN_OK;
    }
    st = settle(engine, error);
    st = st ? st : default_pools_trim(&trim, error);
    if (st == TARN_OK && heap->reserved > target) {
        st = wait_for_frees(engine, NULL, stack, error);
        st = st ? st : default_pools_trim(&trim, error);
    }
    struct tn_private_pool *next;

    for (struct tn_private_pool *p = heap->private_pools.first;
         p && st == TARN_OK && heap->reserved > target; p = next) {
        next = p->next;
        if (p->freeable) {
            st = release_private_pool(engine, p, stack, error);
        } else if (p->open) {
            st = private_pool_trim(&trim, p, error);
        }
    }
    return st;
}
