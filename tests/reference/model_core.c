/* SPDX-License-Identifier: MIT */
/* Blocks, their sets, splitting and merging, counters. */
#include "reference/model_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ref_require(bool condition, const char *what)
{
    if (!condition) {
        (void)fprintf(stderr, "reference allocator: %s\n", what);
        abort();
    }
}

void *ref_grow(void *array, size_t *capacity, size_t needed, size_t element)
{
    if (needed <= *capacity) {
        return array;
    }
    *capacity = needed * 2 + 8;
    void *grown = realloc(array, *capacity * element);

    ref_require(grown != NULL, "no host memory");
    return grown;
}

void ref_emit(struct ref_model *model, enum tarn_action action, uint64_t address, uint64_t size,
              tarn_stream stream, const struct ref_pool *pool)
{
    struct tarn_trace_event event = {.action = action,
                                     .device = model->device->ordinal,
                                     .address = address,
                                     .size = size,
                                     .stream = stream};

    if (pool && pool->owner) {
        event.pool_id[0] = pool->owner->id.first;
        event.pool_id[1] = pool->owner->id.second;
    }
    model->events = ref_grow(model->events, &model->event_capacity, model->event_count + 1,
                             sizeof *model->events);
    model->events[model->event_count++] = event;
}

/* ---- counters ---- */

void ref_increase(struct tarn_stat *stat, uint64_t amount)
{
    stat->current += (int64_t)amount;
    if (stat->current > stat->peak) {
        stat->peak = stat->current;
    }
    stat->allocated += (int64_t)amount;
}

void ref_decrease(struct tarn_stat *stat, uint64_t amount)
{
    stat->current -= (int64_t)amount;
    stat->freed += (int64_t)amount;
}

void ref_increase_kind(struct ref_model *model, enum tarn_stat_kind kind,
                       const struct ref_pool *pool, uint64_t amount)
{
    struct tarn_stat *stat = model->stats.by_pool[kind];

    ref_increase(&stat[TARN_STAT_ALL], amount);
    ref_increase(&stat[pool->is_small ? TARN_STAT_SMALL_POOL : TARN_STAT_LARGE_POOL], amount);
}

void ref_decrease_kind(struct ref_model *model, enum tarn_stat_kind kind,
                       const struct ref_pool *pool, uint64_t amount)
{
    struct tarn_stat *stat = model->stats.by_pool[kind];

    ref_decrease(&stat[TARN_STAT_ALL], amount);
    ref_decrease(&stat[pool->is_small ? TARN_STAT_SMALL_POOL : TARN_STAT_LARGE_POOL], amount);
}

/* ---- sets ---- */

bool ref_streams_have(const struct ref_streams *streams, tarn_stream stream)
{
    for (size_t i = 0; i < streams->count; i++) {
        if (streams->item[i] == stream) {
            return true;
        }
    }
    return false;
}

void ref_streams_add(struct ref_streams *streams, tarn_stream stream)
{
    if (ref_streams_have(streams, stream)) {
        return;
    }
    streams->item =
        ref_grow(streams->item, &streams->capacity, streams->count + 1, sizeof *streams->item);
    streams->item[streams->count++] = stream;
}

static void blocks_insert_at(struct ref_blocks *blocks, size_t at, struct ref_block *block)
{
    blocks->item =
        ref_grow(blocks->item, &blocks->capacity, blocks->count + 1, sizeof(struct ref_block *));
    memmove(blocks->item + at + 1, blocks->item + at,
            (blocks->count - at) * sizeof(struct ref_block *));
    blocks->item[at] = block;
    blocks->count++;
}

void ref_blocks_push(struct ref_blocks *blocks, struct ref_block *block)
{
    blocks_insert_at(blocks, blocks->count, block);
}

void ref_blocks_remove(struct ref_blocks *blocks, const struct ref_block *block)
{
    size_t at = 0;

    while (at < blocks->count && blocks->item[at] != block) {
        at++;
    }
    ref_require(at < blocks->count, "a block is not in its set");
    blocks->count--;
    memmove(blocks->item + at, blocks->item + at + 1,
            (blocks->count - at) * sizeof(struct ref_block *));
}

static bool less_in_pool(const struct ref_pool *pool, const struct ref_block *a,
                         const struct ref_block *b)
{
    if (a->stream != b->stream) {
        return a->stream < b->stream;
    }
    if (a->size != b->size) {
        return a->size < b->size;
    }
    if (pool->by_counter && a->registration_counter != b->registration_counter) {
        return a->registration_counter < b->registration_counter;
    }
    return a->ptr < b->ptr;
}

static size_t lower_bound(const struct ref_pool *pool, const struct ref_block *key)
{
    size_t at = 0;

    while (at < pool->blocks.count && less_in_pool(pool, pool->blocks.item[at], key)) {
        at++;
    }
    return at;
}

static bool less_by_address(const struct ref_block *block, tarn_stream stream, uint64_t ptr)
{
    return block->stream != stream ? block->stream < stream : block->ptr < ptr;
}

size_t ref_lower_bound(const struct ref_pool *pool, tarn_stream stream, uint64_t size)
{
    const struct ref_block key = {.stream = stream, .size = size};

    return lower_bound(pool, &key);
}

void ref_insert_into_blocks(struct ref_pool *pool, struct ref_block *block)
{
    block->gc_count_base = pool->get_free_blocks_call_count;
    blocks_insert_at(&pool->blocks, lower_bound(pool, block), block);
}

void ref_pool_apply_rules(struct ref_pool *pool, const struct tarn_config *config)
{
    struct ref_blocks old = pool->blocks;

    pool->by_counter = config->rules == TARN_RULES_2_14;
    pool->blocks = (struct ref_blocks){0};
    for (size_t i = 0; i < old.count; i++) {
        blocks_insert_at(&pool->blocks, lower_bound(pool, old.item[i]), old.item[i]);
    }
    free(old.item);
}

void ref_apply_rules(struct ref_model *model)
{
    ref_pool_apply_rules(&model->small, &model->config);
    ref_pool_apply_rules(&model->large, &model->config);
    for (struct ref_private *private = model->privates; private; private = private->next) {
        ref_pool_apply_rules(&private->small, &model->config);
        ref_pool_apply_rules(&private->large, &model->config);
    }
}

void ref_insert_into_unmapped(struct ref_pool *pool, struct ref_block *block)
{
    size_t at = 0;

    while (at < pool->unmapped.count &&
           less_by_address(pool->unmapped.item[at], block->stream, block->ptr)) {
        at++;
    }
    blocks_insert_at(&pool->unmapped, at, block);
}

/* ---- blocks ---- */

struct ref_block *ref_block_new(tarn_stream stream, uint64_t size, struct ref_pool *pool,
                                uint64_t ptr)
{
    struct ref_block *block = calloc(1, sizeof *block);

    ref_require(block != NULL, "no host memory");
    block->stream = stream;
    block->size = size;
    block->pool = pool;
    block->ptr = ptr;
    block->mapped = true;
    return block;
}

struct ref_block *ref_block_part(const struct ref_block *whole, uint64_t size, uint64_t ptr)
{
    struct ref_block *block = ref_block_new(whole->stream, size, whole->pool, ptr);

    block->registration_counter = whole->registration_counter;
    block->expandable = whole->expandable;
    return block;
}

void ref_block_delete(struct ref_block *block)
{
    free(block->stream_uses.item);
    free(block->graph_stream_uses.item);
    free(block->free_markers.item);
    free(block);
}

void ref_splice(struct ref_block *block, struct ref_block *before, struct ref_block *after)
{
    if (before) {
        ref_require(before->next == after, "splice: the neighbours are none");
        before->next = block;
    }
    block->prev = before;
    if (after) {
        ref_require(after->prev == before, "splice: the neighbours are none");
        after->prev = block;
    }
    block->next = after;
}

bool ref_is_split(const struct ref_block *block)
{
    return block->prev != NULL || block->next != NULL;
}

uint64_t ref_try_merge(struct ref_block *dst, struct ref_block *src, struct ref_pool *pool)
{
    if (!src || src->allocated || src->event_count > 0 || src->stream_uses.count > 0 ||
        dst->mapped != src->mapped) {
        return 0;
    }
    if (dst->prev == src) {
        dst->ptr = src->ptr;
        dst->prev = src->prev;
        if (dst->prev) {
            dst->prev->next = dst;
        }
    } else {
        dst->next = src->next;
        if (dst->next) {
            dst->next->prev = dst;
        }
    }
    const uint64_t subsumed_size = src->size;

    dst->size += subsumed_size;
    ref_blocks_remove(src->mapped ? &pool->blocks : &pool->unmapped, src);
    ref_block_delete(src);
    return subsumed_size;
}

/* ---- handing out and taking back ---- */

static void count_net_change(struct ref_model *model, enum tarn_stat_kind kind,
                             const struct ref_pool *pool, int64_t change)
{
    if (change > 0) {
        ref_increase_kind(model, kind, pool, (uint64_t)change);
    } else if (change < 0) {
        ref_decrease_kind(model, kind, pool, (uint64_t)-change);
    }
}

void ref_free_block(struct ref_model *model, struct ref_block *block)
{
    struct ref_pool *pool = block->pool;
    const uint64_t original_block_size = block->size;
    const uint64_t requested_size = block->requested_size;
    int64_t net_change_blocks = 0;
    int64_t net_change_size = 0;

    ref_require(!block->allocated && block->event_count == 0 && block->stream_uses.count == 0,
                "a block is freed that is still in use");
    ref_emit(model, TARN_ACTION_FREE_COMPLETED, block->ptr, requested_size, block->stream, pool);
    struct ref_block *const merge_candidates[2] = {block->prev, block->next};

    for (int i = 0; i < 2; i++) {
        const uint64_t subsumed_size = ref_try_merge(block, merge_candidates[i], pool);

        if (subsumed_size > 0) {
            net_change_blocks -= 1;
            net_change_size -= (int64_t)subsumed_size;
        }
    }
    ref_blocks_remove(&model->active, block);
    ref_insert_into_blocks(pool, block);
    if (ref_is_split(block)) {
        net_change_blocks += 1;
        net_change_size += (int64_t)block->size;
    }
    if (!block->expandable) {
        count_net_change(model, TARN_STAT_INACTIVE_SPLIT, pool, net_change_blocks);
        count_net_change(model, TARN_STAT_INACTIVE_SPLIT_BYTES, pool, net_change_size);
    }
    ref_decrease_kind(model, TARN_STAT_ACTIVE, pool, 1);
    ref_decrease_kind(model, TARN_STAT_ACTIVE_BYTES, pool, original_block_size);
    ref_decrease_kind(model, TARN_STAT_REQUESTED_BYTES, pool, requested_size);
}

/* The front part is a new block; the old one becomes the remainder. */
static struct ref_block *split_front(struct ref_block *remaining, uint64_t size)
{
    struct ref_block *block = ref_block_part(remaining, size, remaining->ptr);

    ref_splice(block, remaining->prev, remaining);
    remaining->ptr += size;
    remaining->size -= size;
    ref_insert_into_blocks(remaining->pool, remaining);
    return block;
}

void ref_alloc_found_block(struct ref_model *model, struct ref_request *request, bool split)
{
    struct ref_pool *pool = request->pool;
    struct ref_block *block = request->block;
    const bool already_split = ref_is_split(block);

    if (split) {
        struct ref_block *remaining = block;

        block = split_front(remaining, request->size);
        if (already_split && !block->expandable) {
            ref_decrease_kind(model, TARN_STAT_INACTIVE_SPLIT_BYTES, pool, block->size);
        } else if (!block->expandable) {
            ref_increase_kind(model, TARN_STAT_INACTIVE_SPLIT_BYTES, pool, remaining->size);
            ref_increase_kind(model, TARN_STAT_INACTIVE_SPLIT, pool, 1);
        }
    } else if (already_split && !block->expandable) {
        ref_decrease_kind(model, TARN_STAT_INACTIVE_SPLIT_BYTES, pool, block->size);
        ref_decrease_kind(model, TARN_STAT_INACTIVE_SPLIT, pool, 1);
    }
    block->allocated = true;
    block->requested_size = request->requested;
    ref_emit(model, TARN_ACTION_ALLOC, block->ptr, request->requested, block->stream, pool);
    ref_blocks_push(&model->active, block);
    ref_increase_kind(model, TARN_STAT_ALLOCATION, pool, 1);
    ref_increase_kind(model, TARN_STAT_ALLOCATED_BYTES, pool, block->size);
    ref_increase_kind(model, TARN_STAT_ACTIVE, pool, 1);
    ref_increase_kind(model, TARN_STAT_ACTIVE_BYTES, pool, block->size);
    ref_increase_kind(model, TARN_STAT_REQUESTED_BYTES, pool, block->requested_size);
    if (block->size >= model->config.max_split_size) {
        ref_increase(&model->stats.oversize_allocations, 1);
    }
    request->block = block;
}

bool ref_is_capture_context(const struct ref_model *model)
{
    switch (model->config.rules) {
    case TARN_RULES_2_14:
        return model->active_captures != 0;
    case TARN_RULES_2_11:
        break;
    }
    return model->capture_count != 0;
}

/* PyTorch's DeviceCachingAllocator::free. */
void ref_free_allocated(struct ref_model *model, struct ref_block *block)
{
    block->allocated = false;
    ref_decrease_kind(model, TARN_STAT_ALLOCATION, block->pool, 1);
    ref_decrease_kind(model, TARN_STAT_ALLOCATED_BYTES, block->pool, block->size);
    ref_emit(model, TARN_ACTION_FREE_REQUESTED, block->ptr, block->requested_size, block->stream,
             block->pool);
    if (block->size >= model->config.max_split_size) {
        ref_decrease(&model->stats.oversize_allocations, 1);
    }
    if (block->stream_uses.count == 0) {
        ref_free_block(model, block);
    } else if (ref_is_capture_context(model)) {
        if (model->config.graph_capture_record_stream_reuse) {
            ref_record_free_markers(model, block);
        }
        ref_blocks_push(&model->deferred, block);
    } else {
        ref_insert_events(model, block);
    }
}
