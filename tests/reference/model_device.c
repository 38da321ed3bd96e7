/* SPDX-License-Identifier: MIT */
/* What comes from the device and goes back: segments, pages of expandable segments, the order of
 * release. */
#include "reference/model_core.h"

#include <stdlib.h>
#include <string.h>

/* ---- expandable segments ---- */

static uint64_t pages_of(const struct ref_expandable *segment, uint64_t size)
{
    return (size + segment->page_size - 1) / segment->page_size;
}

/* 9/8 of the device's memory, in pages. NULL: no addresses left. */
static struct ref_expandable *expandable_new(struct ref_model *model, tarn_stream stream,
                                             uint64_t page_size)
{
    struct ref_expandable *segment = calloc(1, sizeof *segment);

    ref_require(segment != NULL, "no host memory");
    segment->page_size = page_size;
    segment->stream = stream;
    segment->page_count =
        pages_of(segment, model->device->total_memory + model->device->total_memory / 8);
    segment->page = calloc(segment->page_count, sizeof *segment->page);
    ref_require(segment->page != NULL, "no host memory");
    if (model->device->ops->va_reserve(model->device, segment->page_count * page_size,
                                       &segment->address) != TARN_OK) {
        free(segment->page);
        free(segment);
        return NULL;
    }
    return segment;
}

static void expandable_delete(struct ref_model *model, struct ref_expandable *segment)
{
    ref_require(model->device->ops->va_release(model->device, segment->address,
                                               segment->page_count * segment->page_size) == TARN_OK,
                "addresses could not be given back");
    free(segment->page);
    free(segment);
}

static bool page_create(struct ref_model *model, uint64_t size, tn_page_handle *page_out)
{
    const enum tarn_status st = model->device->ops->page_create(model->device, size, page_out);

    ref_require(st == TARN_OK || st == TARN_ERR_OUT_OF_MEMORY, "a page failed");
    return st == TARN_OK;
}

static void page_release(struct ref_model *model, tn_page_handle page)
{
    ref_require(model->device->ops->page_release(model->device, page) == TARN_OK,
                "a page could not be released");
}

/* The next page: one created in advance or, when `keep_mapped`, a new one. */
static bool page_take(struct ref_model *model, uint64_t size, tn_page_handle *page_out)
{
    if (model->created_count == 0) {
        return page_create(model, size, page_out);
    }
    *page_out = model->created[0];
    model->created_count--;
    memmove(model->created, model->created + 1, model->created_count * sizeof *model->created);
    return true;
}

/* ExpandableSegment::map; the size mapped, 0 when the device is full. */
static uint64_t expandable_map(struct ref_model *model, struct ref_expandable *segment,
                               uint64_t ptr, uint64_t size)
{
    const uint64_t begin = (ptr - segment->address) / segment->page_size;
    const uint64_t end = pages_of(segment, ptr + size - segment->address);

    ref_require(segment->address + begin * segment->page_size == ptr, "map: not at a page");
    for (uint64_t i = begin; i < end; i++) {
        ref_require(segment->page[i] == 0, "map: mapped already");
        if (!page_take(model, segment->page_size, &segment->page[i])) {
            for (uint64_t j = begin; j < i; j++) {
                page_release(model, segment->page[j]);
                segment->page[j] = 0;
            }
            return 0;
        }
    }
    for (uint64_t i = begin; i < end; i++) {
        ref_require(model->device->ops->map(model->device,
                                            segment->address + i * segment->page_size,
                                            segment->page_size, segment->page[i]) == TARN_OK,
                    "map failed");
    }
    return (end - begin) * segment->page_size;
}

static void expandable_unmap(struct ref_model *model, struct ref_expandable *segment,
                             uint64_t begin, uint64_t end)
{
    ref_require(model->device->ops->stream_wait(model->device, segment->stream) == TARN_OK,
                "waiting for a stream failed");
    for (uint64_t i = begin; i < end; i++) {
        ref_require(model->device->ops->unmap(model->device,
                                              segment->address + i * segment->page_size,
                                              segment->page_size) == TARN_OK,
                    "unmap failed");
        page_release(model, segment->page[i]);
        segment->page[i] = 0;
    }
}

static bool allocatable(const struct ref_block *block)
{
    return block && !block->allocated && block->event_count == 0 && block->stream_uses.count == 0;
}

static bool has_available_address_space(const struct ref_block *block, uint64_t size)
{
    uint64_t bytes = 0;

    while (bytes < size && allocatable(block)) {
        bytes += block->size;
        block = block->next;
    }
    return bytes >= size;
}

static struct ref_block *find_expandable_block(struct ref_model *model, struct ref_request *request)
{
    struct ref_pool *pool = request->pool;

    for (size_t i = 0; i < pool->unmapped.count; i++) {
        struct ref_block *candidate = pool->unmapped.item[i];

        if (candidate->stream != request->stream) {
            continue;
        }
        if (allocatable(candidate->prev)) {
            candidate = candidate->prev;
        }
        if (has_available_address_space(candidate, request->size)) {
            return candidate;
        }
    }
    struct ref_expandable *segment =
        expandable_new(model, request->stream,
                       pool->is_small ? REF_SMALL_BUFFER : model->config.large_segment_size);

    if (!segment) {
        return NULL;
    }
    if (segment->page_count * segment->page_size < request->size) {
        expandable_delete(model, segment);
        return NULL;
    }
    struct ref_block *block = ref_block_new(
        request->stream, segment->page_count * segment->page_size, pool, segment->address);

    block->mapped = false;
    block->expandable = segment;
    block->registration_counter = ++model->registrations;
    ref_insert_into_unmapped(pool, block);
    return block;
}

static bool map_block(struct ref_model *model, struct ref_block *to_map, uint64_t size)
{
    struct ref_pool *pool = to_map->pool;
    const uint64_t ptr = to_map->ptr;
    const uint64_t mapped = expandable_map(model, to_map->expandable, ptr, size);

    if (mapped == 0) {
        return false;
    }
    ref_blocks_remove(&pool->unmapped, to_map);
    to_map->mapped = true;
    if (mapped < to_map->size) {
        struct ref_block *remaining = ref_block_part(to_map, to_map->size - mapped, ptr + mapped);

        remaining->mapped = false;
        ref_splice(remaining, to_map, to_map->next);
        ref_insert_into_unmapped(pool, remaining);
        to_map->size = mapped;
    }
    (void)ref_try_merge(to_map, to_map->prev, pool);
    (void)ref_try_merge(to_map, to_map->next, pool);
    ref_insert_into_blocks(pool, to_map);
    model->total_allocated_memory += mapped;
    ref_increase_kind(model, TARN_STAT_RESERVED_BYTES, pool, mapped);
    model->stats.num_device_alloc++;
    ref_emit(model, TARN_ACTION_SEGMENT_MAP, ptr, mapped, to_map->stream, pool);
    return true;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Creates all pages that the request will map from the candidate on; false with none created. */
static bool create_pages(struct ref_model *model, const struct ref_block *block, uint64_t size)
{
    const uint64_t page_size = block->expandable->page_size;
    uint64_t bytes = 0;

    model->created_count = 0;
    for (; bytes < size; block = block->next) {
        if (block->mapped) {
            bytes += block->size;
            continue;
        }
        const uint64_t pages = pages_of(block->expandable, smaller(block->size, size - bytes));

        bytes += pages * page_size;
        for (uint64_t i = 0; i < pages; i++) {
            model->created = ref_grow(model->created, &model->created_capacity,
                                      model->created_count + 1, sizeof *model->created);
            if (!page_create(model, page_size, &model->created[model->created_count])) {
                while (model->created_count > 0) {
                    page_release(model, model->created[--model->created_count]);
                }
                return false;
            }
            model->created_count++;
        }
    }
    return true;
}

static struct ref_block *try_allocate_expandable_block(struct ref_model *model,
                                                       struct ref_request *request)
{
    const uint64_t size = request->size;
    struct ref_block *candidate = find_expandable_block(model, request);

    if (!candidate || (!model->keep_mapped && !create_pages(model, candidate, size))) {
        return NULL;
    }
    if (!candidate->mapped && !map_block(model, candidate, smaller(candidate->size, size))) {
        return NULL;
    }
    while (candidate->size < size) {
        struct ref_block *next = candidate->next;

        if (!map_block(model, next, smaller(size - candidate->size, next->size))) {
            return NULL;
        }
        candidate = next;
    }
    ref_require(model->created_count == 0, "pages were created that nobody needed");
    ref_blocks_remove(&request->pool->blocks, candidate);
    return candidate;
}

static void unmap_block(struct ref_model *model, struct ref_block *block)
{
    struct ref_expandable *segment = block->expandable;
    struct ref_pool *pool = block->pool;
    const uint64_t begin = pages_of(segment, block->ptr - segment->address);
    const uint64_t end = (block->ptr + block->size - segment->address) / segment->page_size;

    if (begin >= end) {
        return;
    }
    const uint64_t ptr = segment->address + begin * segment->page_size;
    const uint64_t size = (end - begin) * segment->page_size;

    expandable_unmap(model, segment, begin, end);
    ref_blocks_remove(&pool->blocks, block);
    const uint64_t before_size = ptr - block->ptr;
    const uint64_t after_size = block->size - (before_size + size);

    if (before_size > 0) {
        struct ref_block *before = ref_block_part(block, before_size, block->ptr);

        ref_splice(before, block->prev, block);
        ref_insert_into_blocks(pool, before);
    }
    if (after_size > 0) {
        struct ref_block *after = ref_block_part(block, after_size, ptr + size);

        ref_splice(after, block, block->next);
        ref_insert_into_blocks(pool, after);
    }
    block->ptr = ptr;
    block->size = size;
    block->mapped = false;
    (void)ref_try_merge(block, block->prev, pool);
    (void)ref_try_merge(block, block->next, pool);
    ref_insert_into_unmapped(pool, block);
    model->total_allocated_memory -= size;
    ref_decrease_kind(model, TARN_STAT_RESERVED_BYTES, pool, size);
    model->stats.num_device_free++;
    ref_emit(model, TARN_ACTION_SEGMENT_UNMAP, ptr, size, block->stream, pool);
}

/* ---- segments ---- */

bool ref_alloc_block(struct ref_model *model, struct ref_request *request, bool is_retry)
{
    struct ref_pool *pool = request->pool;
    const uint64_t size = request->alloc_size;
    tarn_ptr ptr = 0;

    if (is_retry) {
        model->stats.num_alloc_retries++;
    }
    if (model->limit != TARN_SIZE_UNLIMITED &&
        model->total_allocated_memory + size > model->limit) {
        return false;
    }
    if (model->config.expandable_segments) {
        request->block = try_allocate_expandable_block(model, request);
        return request->block != NULL;
    }
    const enum tarn_status st = model->device->ops->alloc(model->device, size, &ptr);

    ref_require(st == TARN_OK || st == TARN_ERR_OUT_OF_MEMORY, "a segment failed");
    if (st != TARN_OK) {
        return false;
    }
    model->total_allocated_memory += size;
    request->block = ref_block_new(request->stream, size, pool, ptr);
    request->block->registration_counter = ++model->registrations;
    ref_increase_kind(model, TARN_STAT_SEGMENT, pool, 1);
    ref_increase_kind(model, TARN_STAT_RESERVED_BYTES, pool, size);
    if (size >= model->config.max_split_size) {
        ref_increase(&model->stats.oversize_segments, 1);
    }
    model->stats.num_device_alloc++;
    ref_emit(model, TARN_ACTION_SEGMENT_ALLOC, ptr, size, request->stream, pool);
    return true;
}

void ref_release_block(struct ref_model *model, struct ref_block *block)
{
    struct ref_pool *pool = block->pool;

    ref_require(!block->expandable && !ref_is_split(block), "not a whole segment");
    model->stats.num_device_free++;
    ref_emit(model, TARN_ACTION_SEGMENT_FREE, block->ptr, block->size, block->stream, pool);
    ref_require(model->device->ops->free(model->device, block->ptr) == TARN_OK,
                "a segment could not be given back");
    model->total_allocated_memory -= block->size;
    ref_decrease_kind(model, TARN_STAT_SEGMENT, pool, 1);
    ref_decrease_kind(model, TARN_STAT_RESERVED_BYTES, pool, block->size);
    if (block->size >= model->config.max_split_size) {
        ref_decrease(&model->stats.oversize_segments, 1);
    }
    ref_blocks_remove(&pool->blocks, block);
    ref_block_delete(block);
}

void ref_release_blocks(struct ref_model *model, struct ref_pool *pool)
{
    struct ref_blocks to_unmap = {0};
    size_t at = 0;

    while (at < pool->blocks.count) {
        struct ref_block *block = pool->blocks.item[at];

        if (block->expandable) {
            ref_blocks_push(&to_unmap, block);
            at++;
        } else if (!ref_is_split(block)) {
            ref_release_block(model, block);
        } else {
            at++;
        }
    }
    for (size_t i = 0; i < to_unmap.count; i++) {
        struct ref_block *block = to_unmap.item[i];

        unmap_block(model, block);
        if (!ref_is_split(block) && !block->mapped) {
            ref_blocks_remove(&pool->unmapped, block);
            expandable_delete(model, block->expandable);
            ref_block_delete(block);
        }
    }
    free(to_unmap.item);
}

/* A block that may be released to make room for an oversize request. A part of a segment, which a
 * max_split_size made smaller meanwhile can bring here, cannot be. */
static bool may_release(const struct ref_block *block)
{
    return !block->expandable && !ref_is_split(block);
}

bool ref_release_available(struct ref_model *model, const struct ref_request *request)
{
    const uint64_t max_split = model->config.max_split_size;
    const uint64_t key = request->size < max_split ? max_split : request->size;
    struct ref_pool *pool = request->pool;

    if (max_split == TARN_SIZE_UNLIMITED) {
        return false;
    }
    size_t at = ref_lower_bound(pool, request->stream, key);

    if (at < pool->blocks.count && pool->blocks.item[at]->stream == request->stream &&
        may_release(pool->blocks.item[at])) {
        ref_release_block(model, pool->blocks.item[at]);
        return true;
    }
    uint64_t released = 0;

    while (released < key && at > 0) {
        struct ref_block *block = pool->blocks.item[--at];

        if (block->size < max_split || block->stream != request->stream) {
            break;
        }
        if (may_release(block)) {
            released += block->size;
            ref_release_block(model, block);
        }
    }
    return released >= key;
}

/* Ranges of which nothing is mapped, left by allocations that failed. */
static void release_empty_ranges(struct ref_model *model, struct ref_pool *pool)
{
    size_t at = 0;

    while (at < pool->unmapped.count) {
        struct ref_block *block = pool->unmapped.item[at];

        if (ref_is_split(block)) {
            at++;
            continue;
        }
        ref_blocks_remove(&pool->unmapped, block);
        expandable_delete(model, block->expandable);
        ref_block_delete(block);
    }
}

void ref_release_cached(struct ref_model *model, struct tarn_pool_id id)
{
    const bool all = id.first == 0 && id.second == 0;
    struct ref_private **link = &model->privates;

    if (all && !ref_is_capture_context(model)) {
        ref_synchronize(model, NULL);
        ref_release_blocks(model, &model->large);
        ref_release_blocks(model, &model->small);
    }
    while (*link) {
        struct ref_private *private = *link;

        if (!private->freeable ||
            (!all && (private->id.first != id.first || private->id.second != id.second))) {
            link = &private->next;
            continue;
        }
        if (!all && !ref_is_capture_context(model)) {
            ref_synchronize(model, private);
        }
        ref_release_blocks(model, &private->small);
        ref_release_blocks(model, &private->large);
        release_empty_ranges(model, &private->small);
        release_empty_ranges(model, &private->large);
        struct ref_blocks blocks = ref_all_blocks(model);
        bool empty = private->small.unmapped.count == 0 && private->large.unmapped.count == 0;

        for (size_t i = 0; i < blocks.count; i++) {
            empty = empty && blocks.item[i]->pool->owner != private;
        }
        for (size_t i = 0; i < model->capture_count; i++) {
            empty = empty && (model->captures[i].id.first != private->id.first ||
                              model->captures[i].id.second != private->id.second);
        }
        free(blocks.item);
        if (empty) {
            *link = private->next;
            free(private->small.blocks.item);
            free(private->small.unmapped.item);
            free(private->large.blocks.item);
            free(private->large.unmapped.item);
            free(private);
        } else {
            link = &private->next;
        }
    }
}

void ref_collect_garbage(struct ref_model *model)
{
    struct ref_pool *pool = &model->large;
    const uint64_t threshold =
        (uint64_t)(model->config.garbage_collection_threshold * (double)model->limit);
    uint64_t reclaimed = 0;
    uint64_t total_age = 0;
    uint64_t count = 0;
    bool block_freed = true;

    if (model->total_allocated_memory <= threshold) {
        return;
    }
    const uint64_t target_size = model->total_allocated_memory - threshold;

    for (size_t i = 0; i < pool->blocks.count; i++) {
        if (may_release(pool->blocks.item[i])) {
            total_age +=
                (uint64_t)(pool->get_free_blocks_call_count - pool->blocks.item[i]->gc_count_base);
            count++;
        }
    }
    while (reclaimed < target_size && block_freed && count > 0) {
        const double age_threshold = (double)total_age / (double)count;
        size_t at = 0;

        block_freed = false;
        while (at < pool->blocks.count) {
            struct ref_block *block = pool->blocks.item[at];
            const uint64_t age =
                (uint64_t)(pool->get_free_blocks_call_count - block->gc_count_base);

            if (!may_release(block) || (double)age < age_threshold) {
                at++;
                continue;
            }
            block_freed = true;
            reclaimed += block->size;
            total_age -= age;
            count--;
            ref_release_block(model, block);
        }
    }
}
