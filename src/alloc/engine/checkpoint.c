/* SPDX-License-Identifier: MIT */
#include "alloc/engine/checkpoint.h"

#include "alloc/engine/core_check.h"
#include "alloc/engine/native.h"
#include "alloc/pool/segment.h"
#include "base/host_mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- walking the pool ---- */

static bool block_is_in(const struct tn_block *block, const struct tn_private_pool *pool)
{
    return block->set->pool->owner == pool;
}

/* First block of the contiguous mapped range after `block`, in the same segment; NULL if none. */
static struct tn_block *range_after(struct tn_block *block)
{
    while (block && block->mapped) {
        block = block->next;
    }
    while (block && !block->mapped) {
        block = block->next;
    }
    return block;
}

static struct tn_block *segment_first_range(const struct tn_segment *segment)
{
    return segment->first->mapped ? segment->first : range_after(segment->first);
}

/* Calls `visit` with the head of every mapped range of the pool, by address. */
static void pool_each_range(const struct tn_engine *engine, const struct tn_private_pool *pool,
                            void (*visit)(void *context, struct tn_block *head), void *context)
{
    for (struct tn_segment *s = tn_segment_first(&engine->heap); s; s = tn_segment_next(s)) {
        if (!block_is_in(s->first, pool)) {
            continue;
        }
        for (struct tn_block *head = segment_first_range(s); head; head = range_after(head)) {
            visit(context, head);
        }
    }
}

/* The pool, or NULL with the error filled in. */
static struct tn_private_pool *pool_find(const struct tn_engine *engine, struct tarn_pool_id id,
                                         struct tarn_error *error)
{
    struct tn_private_pool *pool = tn_private_pool_find(&engine->heap.private_pools, id);

    if (!pool) {
        (void)tn_fail(error, TARN_ERR_NOT_FOUND, "there is no private pool (%llu, %llu)",
                      (unsigned long long)id.first, (unsigned long long)id.second);
    }
    return pool;
}

/* ---- taking a checkpoint ---- */

struct census {
    uint64_t ranges;
    uint64_t blocks;
    uint64_t waiting;
    struct tarn_checkpoint *checkpoint; /* NULL: only count */
};

static void census_range(void *context, struct tn_block *head)
{
    struct census *census = context;
    struct tarn_checkpoint *checkpoint = census->checkpoint;
    const uint64_t first = census->blocks;

    tn_assert(head);
    for (const struct tn_block *b = head; b && b->mapped; b = b->next) {
        census->waiting += !b->allocated && b->uses != 0;
        if (checkpoint) {
            checkpoint->blocks[census->blocks] = (struct tn_layout_block){
                .size = b->size, .requested = b->size, .allocated = b->allocated};
        }
        census->blocks++;
    }
    if (checkpoint) {
        checkpoint->ranges[census->ranges] =
            (struct tn_checkpoint_range){.address = head->address,
                                         .first_block = first,
                                         .block_count = census->blocks - first,
                                         .stream = head->set->stream,
                                         .is_small = head->set->pool->is_small};
    }
    census->ranges++;
}

static struct tarn_checkpoint *checkpoint_create(struct tarn_pool_id id, uint64_t ranges,
                                                 uint64_t blocks)
{
    struct tarn_checkpoint *checkpoint = tn_host_alloc_zero(sizeof *checkpoint);

    if (!checkpoint) {
        return NULL;
    }
    checkpoint->id = id;
    checkpoint->ranges = tn_host_alloc(ranges * sizeof *checkpoint->ranges);
    checkpoint->range_count = checkpoint->ranges ? ranges : 0;
    checkpoint->blocks = tn_host_alloc(blocks * sizeof *checkpoint->blocks);
    checkpoint->block_count = checkpoint->blocks ? blocks : 0;
    if (checkpoint->range_count != ranges || checkpoint->block_count != blocks) {
        tarn_checkpoint_destroy(checkpoint);
        return NULL;
    }
    return checkpoint;
}

void tarn_checkpoint_destroy(struct tarn_checkpoint *checkpoint)
{
    if (checkpoint) {
        tn_host_free(checkpoint->ranges, checkpoint->range_count * sizeof *checkpoint->ranges);
        tn_host_free(checkpoint->blocks, checkpoint->block_count * sizeof *checkpoint->blocks);
        tn_host_free(checkpoint, sizeof *checkpoint);
    }
}

static enum tarn_status get_locked(struct tn_engine *engine, struct tarn_pool_id id,
                                   struct tarn_checkpoint **checkpoint_out,
                                   struct tarn_error *error)
{
    const enum tarn_status st = tn_stream_waits_insert_deferred(&engine->waits, 0, error);
    struct census count = {0};

    if (st) {
        return st;
    }
    struct tn_private_pool *pool = pool_find(engine, id, error);

    if (!pool) {
        return TARN_ERR_NOT_FOUND;
    }
    pool_each_range(engine, pool, census_range, &count);
    if (count.waiting > 0) {
        return tn_fail(error, TARN_ERR_STATE,
                       "private pool (%llu, %llu) has %llu blocks that wait for streams; "
                       "synchronize and allocate once before taking a checkpoint",
                       (unsigned long long)id.first, (unsigned long long)id.second,
                       (unsigned long long)count.waiting);
    }
    struct census fill = {.checkpoint = checkpoint_create(id, count.ranges, count.blocks)};

    if (!fill.checkpoint) {
        return tn_fail_memory(error);
    }
    pool_each_range(engine, pool, census_range, &fill);
    pool->pages_stay = true;
    *checkpoint_out = fill.checkpoint;
    return TARN_OK;
}

enum tarn_status tn_checkpoint_get(struct tn_engine *engine, struct tarn_pool_id id,
                                   struct tarn_checkpoint **checkpoint_out,
                                   struct tarn_error *error)
{
    tn_engine_lock(engine);
    const enum tarn_status st = get_locked(engine, id, checkpoint_out, error);

    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

/* ---- restoring ---- */

/* Block at exactly this address, or NULL. */
static struct tn_block *block_at(const struct tn_engine *engine, uint64_t address)
{
    const struct tn_segment *segment = tn_segment_find(&engine->heap, address);
    struct tn_block *block = segment ? segment->first : NULL;

    while (block && block->address < address) {
        block = block->next;
    }
    return block && block->address == address ? block : NULL;
}

static uint64_t range_size(const struct tarn_checkpoint *checkpoint,
                           const struct tn_checkpoint_range *range)
{
    uint64_t size = 0;

    for (uint64_t i = 0; i < range->block_count; i++) {
        size += checkpoint->blocks[range->first_block + i].size;
    }
    return size;
}

/* Whether the range will be one free block once everything allocated is freed. */
static enum tarn_status range_check(const struct tn_engine *engine,
                                    const struct tn_private_pool *pool,
                                    const struct tarn_checkpoint *checkpoint,
                                    const struct tn_checkpoint_range *range,
                                    struct tarn_error *error)
{
    const struct tn_block *block = block_at(engine, range->address);
    const uint64_t size = range_size(checkpoint, range);
    uint64_t have = 0;

    /* A pool created again under the same id may have other segments at the old addresses. */
    if (!block || !block_is_in(block, pool) || (block->prev && block->prev->mapped) ||
        block->set->stream != range->stream || block->set->pool->is_small != range->is_small) {
        return tn_fail(error, TARN_ERR_STATE, "the checkpoint's segment 0x%llx is not in its pool",
                       (unsigned long long)range->address);
    }
    for (; block && block->mapped; block = block->next) {
        if (tn_stream_use_has_streams(&engine->waits, block)) {
            return tn_fail(error, TARN_ERR_STATE,
                           "block 0x%llx of the pool is used by other streams; it cannot be "
                           "restored before they are done",
                           (unsigned long long)block->address);
        }
        have += block->size;
    }
    return have >= size ? TARN_OK
                        : tn_fail(error, TARN_ERR_STATE,
                                  "the checkpoint's segment 0x%llx has only %llu of %llu bytes",
                                  (unsigned long long)range->address, (unsigned long long)have,
                                  (unsigned long long)size);
}

static void count_live(void *context, struct tn_block *head)
{
    uint64_t *live = context;

    for (const struct tn_block *b = head; b && b->mapped; b = b->next) {
        *live += b->allocated;
    }
}

static enum tarn_status delta_reserve(struct tarn_checkpoint_delta *delta, uint64_t freed,
                                      uint64_t created)
{
    *delta = (struct tarn_checkpoint_delta){
        .freed = tn_host_alloc(freed * sizeof(tarn_ptr)),
        .created = tn_host_alloc(created * sizeof(tarn_ptr)),
    };
    delta->freed_count = delta->freed ? freed : 0;
    delta->created_count = delta->created ? created : 0;
    if (delta->freed_count != freed || delta->created_count != created) {
        tarn_checkpoint_delta_fini(delta);
        return TARN_ERR_HOST_MEMORY;
    }
    return TARN_OK;
}

void tarn_checkpoint_delta_fini(struct tarn_checkpoint_delta *delta)
{
    tn_host_free(delta->freed, delta->freed_count * sizeof(tarn_ptr));
    tn_host_free(delta->created, delta->created_count * sizeof(tarn_ptr));
    *delta = (struct tarn_checkpoint_delta){0};
}

static uint64_t checkpoint_live(const struct tarn_checkpoint *checkpoint)
{
    uint64_t live = 0;

    for (uint64_t i = 0; i < checkpoint->block_count; i++) {
        live += checkpoint->blocks[i].allocated;
    }
    return live;
}

/* Heads of ranges with their index in the wanted order. */
struct ordered_range {
    struct tn_block *head;                   /* while freeing */
    const struct tn_checkpoint_range *range; /* while allocating */
    uint64_t address;
    uint64_t index;
};

static int ordered_range_compare(const void *a, const void *b)
{
    const struct ordered_range *x = a;
    const struct ordered_range *y = b;

    if (x->index != y->index) {
        return x->index < y->index ? -1 : 1;
    }
    return (x->address > y->address) - (x->address < y->address);
}

/* Index of the first address that lies in [start, start + size), `count` if none does. */
static uint64_t order_index(const uint64_t *addresses, uint64_t count, uint64_t start,
                            uint64_t size)
{
    uint64_t i = 0;

    while (i < count && addresses[i] - start >= size) {
        i++;
    }
    return i;
}

static uint64_t mapped_size(const struct tn_block *head)
{
    uint64_t size = 0;

    for (; head && head->mapped; head = head->next) {
        size += head->size;
    }
    return size;
}

struct range_list {
    struct ordered_range *ranges;
    uint64_t count;
};

static void list_sort(struct range_list *list, uint64_t count)
{
    if (count > 1) {
        qsort(list->ranges, count, sizeof *list->ranges, ordered_range_compare);
    }
}

static void list_head(void *context, struct tn_block *head)
{
    struct range_list *list = context;

    list->ranges[list->count++] = (struct ordered_range){.head = head, .address = head->address};
}

/* Frees a block. Returns the node that covers it afterwards: its own, or that of the free block
 * below that it was merged into. */
static struct tn_block *restore_free(struct tn_engine *engine, struct tn_block *block)
{
    struct tn_block *below = block->prev;
    const bool joins_below = !tn_stream_use_has_streams(&engine->waits, block) && below &&
                             tn_block_is_idle(below) && below->mapped;

    tn_native_free_surely(engine, block, 0);
    return joins_below ? below : block;
}

/* Frees everything that is allocated from the pool. */
static void restore_free_all(struct tn_engine *engine, const struct tn_private_pool *pool,
                             const struct tn_checkpoint_order *order, struct range_list *list,
                             struct tarn_checkpoint_delta *delta)
{
    uint64_t freed = 0;

    list->count = 0;
    pool_each_range(engine, pool, list_head, list);
    for (uint64_t i = 0; i < list->count; i++) {
        list->ranges[i].index =
            order_index(order->freed, order->freed_count, list->ranges[i].address,
                        mapped_size(list->ranges[i].head));
    }
    list_sort(list, list->count);
    for (uint64_t i = 0; i < list->count; i++) {
        struct tn_block *block = list->ranges[i].head;

        for (; block && block->mapped; block = block->next) {
            if (block->allocated) {
                delta->freed[freed++] = block->address;
                block = restore_free(engine, block);
            }
        }
    }
}

static void restore_range(struct tn_engine *engine, const struct tarn_checkpoint *checkpoint,
                          const struct tn_checkpoint_range *range, uint64_t stack,
                          struct tarn_checkpoint_delta *delta, uint64_t *created)
{
    const struct tn_layout_block *pieces = &checkpoint->blocks[range->first_block];
    uint64_t address = range->address;

    tn_rebuild_layout(engine, block_at(engine, address), pieces, range->block_count, stack);
    for (uint64_t i = 0; i < range->block_count; i++) {
        if (pieces[i].allocated) {
            delta->created[(*created)++] = address;
        }
        address += pieces[i].size;
    }
}

static void restore_ranges(struct tn_engine *engine, const struct tarn_checkpoint *checkpoint,
                           const struct tn_checkpoint_order *order, struct range_list *list,
                           uint64_t stack, struct tarn_checkpoint_delta *delta)
{
    uint64_t created = 0;

    for (uint64_t i = 0; i < checkpoint->range_count; i++) {
        const struct tn_checkpoint_range *range = &checkpoint->ranges[i];

        list->ranges[i] = (struct ordered_range){
            .range = range,
            .address = range->address,
            .index = order_index(order->created, order->created_count, range->address,
                                 range_size(checkpoint, range)),
        };
    }
    list_sort(list, checkpoint->range_count);
    for (uint64_t i = 0; i < checkpoint->range_count; i++) {
        restore_range(engine, checkpoint, list->ranges[i].range, stack, delta, &created);
    }
}

/* Checks that the checkpoint can be restored, and allocates the host memory for it. */
static enum tarn_status restore_prepare(struct tn_engine *engine, struct tn_private_pool *pool,
                                        const struct tarn_checkpoint *checkpoint,
                                        struct range_list *list, uint64_t *list_size,
                                        struct tarn_checkpoint_delta *delta,
                                        struct tarn_error *error)
{
    struct census count = {0};
    uint64_t live = 0;

    if (pool->freeable) { /* as in PyTorch, a checkpoint of it can still be taken */
        return tn_fail(error, TARN_ERR_STATE,
                       "private pool (%llu, %llu) was released: nothing can be restored in it",
                       (unsigned long long)checkpoint->id.first,
                       (unsigned long long)checkpoint->id.second);
    }
    for (uint64_t i = 0; i < checkpoint->range_count; i++) {
        const enum tarn_status st =
            range_check(engine, pool, checkpoint, &checkpoint->ranges[i], error);

        if (st) {
            return st;
        }
    }
    pool_each_range(engine, pool, census_range, &count);
    pool_each_range(engine, pool, count_live, &live);
    *list_size = (count.ranges + checkpoint->range_count) * sizeof *list->ranges;
    list->ranges = tn_host_alloc(*list_size);
    if ((!list->ranges && *list_size > 0) ||
        !tn_heap_reserve_spares(&engine->heap, &engine->heap.shard,
                                (uint32_t)checkpoint->block_count) ||
        !tn_ptr_map_reserve(&engine->heap.shard.map, checkpoint->block_count) ||
        !tn_stream_waits_reserve_deferred(&engine->waits, live) ||
        delta_reserve(delta, live, checkpoint_live(checkpoint))) {
        tn_host_free(list->ranges, *list_size);
        return tn_fail_memory(error);
    }
    return TARN_OK;
}

static enum tarn_status set_locked(struct tn_engine *engine,
                                   const struct tarn_checkpoint *checkpoint,
                                   const struct tn_checkpoint_order *order, uint64_t stack,
                                   struct tarn_checkpoint_delta *delta, struct tarn_error *error)
{
    struct tn_private_pool *pool = pool_find(engine, checkpoint->id, error);
    struct range_list list = {0};
    uint64_t list_size = 0;

    if (!pool) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status awake = tn_private_pool_check_awake(pool, error);

    if (awake) {
        return awake;
    }
    const enum tarn_status st =
        restore_prepare(engine, pool, checkpoint, &list, &list_size, delta, error);

    if (st) {
        return st;
    }
    engine->heap.shard.map.keeps_room = true; /* for the blocks of the checkpoint */
    restore_free_all(engine, pool, order, &list, delta);
    restore_ranges(engine, checkpoint, order, &list, stack, delta);
    engine->heap.shard.map.keeps_room = false;
    tn_host_free(list.ranges, list_size);
    return TARN_OK;
}

enum tarn_status tn_checkpoint_set(struct tn_engine *engine,
                                   const struct tarn_checkpoint *checkpoint,
                                   const struct tn_checkpoint_order *order,
                                   struct tarn_checkpoint_delta *delta_out,
                                   struct tarn_error *error)
{
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_STATE);

    tn_engine_lock(engine);
    const enum tarn_status st = set_locked(engine, checkpoint, order, stack, delta_out, error);

    tn_heap_drop_captured(&engine->heap, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

/* ---- live blocks ---- */

static int ptr_compare(const void *a, const void *b)
{
    const tarn_ptr x = *(const tarn_ptr *)a;
    const tarn_ptr y = *(const tarn_ptr *)b;

    return (x > y) - (x < y);
}

struct live_check {
    const tarn_ptr *expected; /* sorted */
    size_t count;
    uint64_t live;
    bool all_expected;
};

static void check_live_range(void *context, struct tn_block *head)
{
    struct live_check *check = context;

    for (const struct tn_block *b = head; b && b->mapped; b = b->next) {
        if (b->allocated) {
            check->live++;
            check->all_expected = check->all_expected && check->count > 0 &&
                                  bsearch(&b->address, check->expected, check->count,
                                          sizeof *check->expected, ptr_compare);
        }
    }
}

enum tarn_status tn_checkpoint_check_live(struct tn_engine *engine, struct tarn_pool_id id,
                                          const tarn_ptr *expected, size_t count, bool *live_out,
                                          struct tarn_error *error)
{
    const size_t bytes = count * sizeof(tarn_ptr);
    tarn_ptr *sorted = tn_host_alloc(bytes);
    struct live_check check = {.expected = sorted, .count = count, .all_expected = true};

    if (!sorted && count > 0) {
        return tn_fail_memory(error);
    }
    if (count > 0) {
        memcpy(sorted, expected, bytes);
        qsort(sorted, count, sizeof *sorted, ptr_compare);
    }
    tn_engine_lock(engine);
    const struct tn_private_pool *pool = pool_find(engine, id, error);

    if (pool) {
        pool_each_range(engine, pool, check_live_range, &check);
        *live_out = check.all_expected && check.live == count;
    }
    tn_engine_unlock(engine);
    tn_host_free(sorted, bytes);
    return pool ? TARN_OK : TARN_ERR_NOT_FOUND;
}
