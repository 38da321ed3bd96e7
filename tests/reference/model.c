/* SPDX-License-Identifier: MIT */
/* The reference allocator's calls: the ladder of an allocation, and what is no more than a loop. */
#include "reference/model.h"

#include "reference/model_core.h"

#include <stdlib.h>
#include <string.h>

struct ref_model *ref_create(struct tarn_device *device, const struct tarn_config *config)
{
    struct ref_model *model = calloc(1, sizeof *model);

    ref_require(model != NULL, "no host memory");
    model->device = device;
    if (config) {
        model->config = *config;
    } else {
        tarn_config_init(&model->config);
    }
    model->small.is_small = true;
    ref_apply_rules(model);
    model->limit = TARN_SIZE_UNLIMITED;
    model->stats.struct_size = sizeof model->stats;
    model->stats.max_split_size = (int64_t)model->config.max_split_size;
    if (model->config.memory_fraction_given) {
        (void)ref_set_fraction(model, model->config.memory_fraction);
    }
    return model;
}

void ref_set_config(struct ref_model *model, const struct tarn_config *config)
{
    model->config = *config; /* its fraction only counts at the start */
    ref_apply_rules(model);
}

void ref_keep_mapped(struct ref_model *model, bool keep)
{
    model->keep_mapped = keep;
}

void ref_set_callback(struct ref_model *model, bool (*callback)(void *context), void *context)
{
    model->callback = callback;
    model->callback_context = context;
}

/* ---- rounding ---- */

static uint64_t floor_log2(uint64_t size)
{
    uint64_t log = 0;

    while (size >>= 1) {
        log++;
    }
    return log;
}

static uint64_t divisions_of(const struct tarn_config *config, uint64_t size)
{
    const uint64_t log = floor_log2(size);
    const uint64_t index = log < 20 ? 0 : log - 20;

    return config->roundup_power2_divisions[index > 15 ? 15 : index];
}

static uint64_t roundup_power2_next_division(uint64_t size, uint64_t divisions)
{
    const uint64_t power2_floor = (uint64_t)1 << floor_log2(size);

    if (power2_floor == size) {
        return size;
    }
    const uint64_t power2_division = power2_floor >> floor_log2(divisions);

    if (power2_division == 0) {
        return power2_floor << 1;
    }
    const uint64_t round_size_floor = size & ~(power2_division - 1);

    return round_size_floor == size ? size : round_size_floor + power2_division;
}

static uint64_t round_size(const struct tarn_config *config, uint64_t size)
{
    if (size < REF_MIN_BLOCK) {
        return REF_MIN_BLOCK;
    }
    const uint64_t divisions = divisions_of(config, size);

    if (divisions > 1 && size > REF_MIN_BLOCK * divisions) {
        return roundup_power2_next_division(size, divisions);
    }
    return REF_MIN_BLOCK * ((size + REF_MIN_BLOCK - 1) / REF_MIN_BLOCK);
}

static uint64_t get_allocation_size(const struct tarn_config *config, uint64_t size)
{
    if (size <= REF_SMALL_SIZE) {
        return REF_SMALL_BUFFER;
    }
    if (size < REF_MIN_LARGE) {
        return config->large_segment_size;
    }
    return REF_ROUND_LARGE * ((size + REF_ROUND_LARGE - 1) / REF_ROUND_LARGE);
}

static bool should_split(const struct ref_model *model, const struct ref_block *block,
                         uint64_t size, bool expandable)
{
    const uint64_t remaining = block->size - size;

    if (block->pool->owner && block->pool->owner->no_split) {
        return false;
    }
    if (block->pool->is_small || expandable) {
        return remaining >= REF_MIN_BLOCK;
    }
    return size < model->config.max_split_size && remaining > REF_SMALL_SIZE;
}

/* ---- choosing a free block ---- */

static uint64_t expandable_size(const struct ref_block *block)
{
    return block->size + (block->next && !block->next->mapped ? block->next->size : 0);
}

static bool collects_garbage(const struct ref_model *model)
{
    return model->limit != TARN_SIZE_UNLIMITED && model->config.garbage_collection_threshold > 0.0;
}

static bool get_free_block(struct ref_model *model, struct ref_request *request)
{
    struct ref_pool *pool = request->pool;
    const uint64_t max_split = model->config.max_split_size;

    if (collects_garbage(model)) {
        pool->get_free_blocks_call_count++;
    }
    size_t at = ref_lower_bound(pool, request->stream, request->size);
    size_t end = at;

    while (end < pool->blocks.count && pool->blocks.item[end]->stream == request->stream) {
        end++;
    }
    if (at < end && pool->blocks.item[at]->expandable) {
        if (request->expandable) {
            while (pool->blocks.item[at]->expandable && at + 1 < end &&
                   expandable_size(pool->blocks.item[at + 1]) <
                       expandable_size(pool->blocks.item[at])) {
                at++;
            }
        } else {
            while (at < end && pool->blocks.item[at]->expandable) {
                at++;
            }
        }
    }
    if (at == end) {
        return false;
    }
    struct ref_block *block = pool->blocks.item[at];

    if (request->size < max_split && block->size >= max_split) {
        return false;
    }
    if (request->size >= max_split &&
        block->size >= request->size + model->config.max_non_split_rounding) {
        return false;
    }
    ref_blocks_remove(&pool->blocks, block);
    request->block = block;
    return true;
}

/* Private pools that may help out, asked for what they have free. */
static bool try_mempool_fallback(struct ref_model *model, struct ref_request *request)
{
    struct ref_pool *const asked = request->pool;

    if (asked->owner) {
        return false;
    }
    for (struct ref_private *private = model->privates; private; private = private->next) {
        if (private->use_on_oom && private->use_count > 0) {
            request->pool = asked->is_small ? &private->small : &private->large;
            request->expandable = false; /* expandable segments are not lent */
            if (get_free_block(model, request)) {
                return true;
            }
        }
    }
    request->pool = asked;
    request->expandable = model->config.expandable_segments;
    return false;
}

static void report_oom(struct ref_model *model, const struct ref_request *request)
{
    uint64_t device_free = 0;
    uint64_t device_total = 0;

    ref_require(model->device->ops->memory_info(model->device, &device_free, &device_total) ==
                    TARN_OK,
                "memory info failed");
    ref_emit(model, TARN_ACTION_OOM, device_free, request->size, request->stream, request->pool);
    if (request->rejected) {
        model->stats.num_oom_rejections++;
    } else {
        model->stats.num_ooms++;
    }
}

static bool find_or_make(struct ref_model *model, struct ref_request *request)
{
    if (get_free_block(model, request)) {
        return true;
    }
    request->rejected = model->config.throw_on_device_oom && model->limit != TARN_SIZE_UNLIMITED &&
                        model->total_allocated_memory + request->alloc_size > model->limit;
    if (request->rejected) {
        return false;
    }
    if (model->callback && model->callback(model->callback_context) &&
        get_free_block(model, request)) {
        return true;
    }
    if (collects_garbage(model)) {
        ref_collect_garbage(model);
    }
    if (ref_alloc_block(model, request, false) || try_mempool_fallback(model, request) ||
        (ref_release_available(model, request) && ref_alloc_block(model, request, false))) {
        return true;
    }
    if (ref_is_capture_context(model)) {
        return false;
    }
    ref_release_cached(model, (struct tarn_pool_id){0, 0});
    return ref_alloc_block(model, request, true);
}

static void complete_frees(struct ref_model *model, tarn_stream stream)
{
    if (!ref_is_capture_context(model)) {
        ref_process_events(model);
    } else if (model->config.graph_capture_record_stream_reuse) {
        ref_free_safe_blocks(model, stream);
    }
}

static struct ref_request make_request(struct ref_model *model, uint64_t size, tarn_stream stream)
{
    struct ref_request request = {.stream = stream, .requested = size};

    request.size = round_size(&model->config, size);
    request.expandable = model->config.expandable_segments;
    request.alloc_size = get_allocation_size(&model->config, request.size);
    request.pool = ref_get_pool(model, request.size, stream);
    return request;
}

enum tarn_status ref_alloc(struct ref_model *model, uint64_t size, tarn_stream stream,
                           tarn_ptr *ptr_out)
{
    if (size == 0) {
        *ptr_out = 0;
        return TARN_OK;
    }
    if (size >= REF_ABSURD_SIZE) {
        return TARN_ERR_OUT_OF_MEMORY;
    }
    complete_frees(model, stream);
    struct ref_request request = make_request(model, size, stream);

    if (!find_or_make(model, &request)) {
        report_oom(model, &request);
        return TARN_ERR_OUT_OF_MEMORY;
    }
    ref_alloc_found_block(model, &request,
                          should_split(model, request.block, request.size, request.expandable));
    *ptr_out = request.block->ptr;
    return TARN_OK;
}

/* The free block of the request's pool and stream that contains these bytes. */
static struct ref_block *find_containing(const struct ref_request *request, uint64_t ptr)
{
    const struct ref_blocks *blocks = &request->pool->blocks;

    for (size_t i = 0; i < blocks->count; i++) {
        struct ref_block *block = blocks->item[i];

        if (block->stream == request->stream && block->ptr <= ptr &&
            ptr + request->size <= block->ptr + block->size) {
            return block;
        }
    }
    return NULL;
}

/* Three calls of PyTorch's: malloc of the prefix, malloc at the address, free of the prefix. */
enum tarn_status ref_alloc_at(struct ref_model *model, uint64_t size, tarn_stream stream,
                              tarn_ptr ptr)
{
    if (size >= REF_ABSURD_SIZE) {
        return TARN_ERR_OUT_OF_MEMORY;
    }
    complete_frees(model, stream);
    struct ref_request request = make_request(model, size, stream);
    struct ref_request prefix = request;

    prefix.block = find_containing(&request, ptr);
    if (!prefix.block) {
        return TARN_ERR_NOT_FOUND;
    }
    prefix.size = ptr - prefix.block->ptr;
    prefix.requested = prefix.size;
    if (prefix.size > 0) {
        if (!should_split(model, prefix.block, prefix.size, prefix.expandable)) {
            return TARN_ERR_NOT_FOUND;
        }
        ref_blocks_remove(&request.pool->blocks, prefix.block);
        ref_alloc_found_block(model, &prefix, true);
    }
    request.block = find_containing(&request, ptr);
    ref_require(request.block && request.block->ptr == ptr, "no free block at the address");
    ref_blocks_remove(&request.pool->blocks, request.block);
    ref_alloc_found_block(model, &request,
                          should_split(model, request.block, request.size, request.expandable));
    if (prefix.size > 0) {
        ref_free_allocated(model, prefix.block);
    }
    return TARN_OK;
}

/* ---- the rest ---- */

static struct ref_block *find_allocated(const struct ref_model *model, tarn_ptr ptr)
{
    for (size_t i = 0; i < model->active.count; i++) {
        struct ref_block *block = model->active.item[i];

        if (block->allocated && block->ptr == ptr) {
            return block;
        }
    }
    return NULL;
}

enum tarn_status ref_free(struct ref_model *model, tarn_ptr ptr)
{
    struct ref_block *block = find_allocated(model, ptr);

    if (ptr == 0) {
        return TARN_OK;
    }
    if (!block) {
        return TARN_ERR_INVALID_POINTER;
    }
    ref_free_allocated(model, block);
    return TARN_OK;
}

enum tarn_status ref_record_stream(struct ref_model *model, tarn_ptr ptr, tarn_stream stream)
{
    struct ref_block *block = find_allocated(model, ptr);

    if (ptr == 0) {
        return TARN_OK;
    }
    if (!block) {
        return TARN_ERR_INVALID_POINTER;
    }
    if (stream == block->stream) {
        return TARN_OK;
    }
    ref_streams_add(&block->stream_uses, stream);
    if (ref_is_capture_context(model)) {
        ref_streams_add(&block->graph_stream_uses, stream);
    }
    return TARN_OK;
}

enum tarn_status ref_empty_cache(struct ref_model *model, struct tarn_pool_id id)
{
    ref_release_cached(model, id);
    return TARN_OK;
}

enum tarn_status ref_base_allocation(struct ref_model *model, tarn_ptr ptr, tarn_ptr *base_out,
                                     uint64_t *size_out)
{
    const struct ref_block *block = find_allocated(model, ptr);
    uint64_t size = 0;

    if (!block) {
        return TARN_ERR_INVALID_POINTER;
    }
    while (block->prev) {
        block = block->prev;
    }
    *base_out = block->ptr;
    for (; block; block = block->next) {
        size += block->size;
    }
    *size_out = size;
    return TARN_OK;
}

enum tarn_status ref_set_fraction(struct ref_model *model, double fraction)
{
    if (!(fraction >= 0.0 && fraction <= 1.0)) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    model->limit = fraction >= 1.0 ? TARN_SIZE_UNLIMITED
                                   : (uint64_t)(fraction * (double)model->device->total_memory);
    return TARN_OK;
}

uint64_t ref_reclaimed_in_capture(const struct ref_model *model)
{
    return model->reclaimed_in_capture;
}

uint64_t ref_get_limit(const struct ref_model *model)
{
    return model->limit;
}

void ref_get_stats(const struct ref_model *model, struct tarn_stats *stats_out)
{
    *stats_out = model->stats;
}

void ref_reset_peak_stats(struct ref_model *model)
{
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            struct tarn_stat *stat = &model->stats.by_pool[kind][pool];

            stat->peak = stat->current;
        }
    }
    model->stats.oversize_allocations.peak = model->stats.oversize_allocations.current;
    model->stats.oversize_segments.peak = model->stats.oversize_segments.current;
}

static void reset_accumulated(struct tarn_stat *stat)
{
    stat->allocated = 0;
    stat->freed = 0;
}

void ref_reset_accumulated_stats(struct ref_model *model)
{
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            reset_accumulated(&model->stats.by_pool[kind][pool]);
        }
    }
    reset_accumulated(&model->stats.oversize_allocations);
    reset_accumulated(&model->stats.oversize_segments);
    model->stats.num_alloc_retries = 0;
    model->stats.num_ooms = 0;
    model->stats.num_oom_rejections = 0;
    model->stats.num_sync_all_streams = 0;
    model->stats.num_device_alloc = 0;
    model->stats.num_device_free = 0;
}

static uint64_t largest_of(const struct ref_pool *pool, uint64_t largest)
{
    for (size_t i = 0; i < pool->blocks.count; i++) {
        if (pool->blocks.item[i]->size > largest) {
            largest = pool->blocks.item[i]->size;
        }
    }
    return largest;
}

uint64_t ref_cache_info(struct ref_model *model, uint64_t largest)
{
    uint64_t device_total = 0;

    if (largest == 0) {
        ref_require(model->device->ops->memory_info(model->device, &largest, &device_total) ==
                        TARN_OK,
                    "memory info failed");
    }
    largest = largest_of(&model->small, largest_of(&model->large, largest));
    for (const struct ref_private *private = model->privates; private; private = private->next) {
        largest = largest_of(&private->small, largest_of(&private->large, largest));
    }
    return largest;
}

const struct tarn_trace_event *ref_events(const struct ref_model *model, size_t *count_out)
{
    *count_out = model->event_count;
    return model->events;
}

void ref_clear_events(struct ref_model *model)
{
    model->event_count = 0;
}

/* ---- the end ---- */

static void delete_ranges(struct ref_model *model, struct ref_block *first)
{
    struct ref_expandable *segment = first->expandable;
    const struct tn_device_ops *ops = model->device->ops;

    for (uint64_t i = 0; segment && i < segment->page_count; i++) {
        if (segment->page[i]) {
            ref_require(ops->unmap(model->device, segment->address + i * segment->page_size,
                                   segment->page_size) == TARN_OK &&
                            ops->page_release(model->device, segment->page[i]) == TARN_OK,
                        "a page could not be given back");
        }
    }
    if (segment) {
        ref_require(ops->va_release(model->device, segment->address,
                                    segment->page_count * segment->page_size) == TARN_OK,
                    "addresses could not be given back");
        free(segment->page);
        free(segment);
    } else {
        ref_require(ops->free(model->device, first->ptr) == TARN_OK,
                    "a segment could not be given back");
    }
    while (first) {
        struct ref_block *next = first->next;

        ref_block_delete(first);
        first = next;
    }
}

static void fini_pool(struct ref_pool *pool, struct ref_blocks *heads)
{
    for (size_t i = 0; i < pool->unmapped.count; i++) {
        if (!pool->unmapped.item[i]->prev) {
            ref_blocks_push(heads, pool->unmapped.item[i]);
        }
    }
    free(pool->blocks.item);
    free(pool->unmapped.item);
}

static void fini_queues(struct ref_model *model)
{
    for (size_t i = 0; i < model->queue_count; i++) {
        struct ref_queue *queue = &model->queues[i];

        for (size_t j = 0; j < queue->count; j++) {
            (void)model->device->ops->event_destroy(model->device, queue->item[j].event);
        }
        free(queue->item);
    }
    free(model->queues);
}

void ref_destroy(struct ref_model *model)
{
    struct ref_blocks heads = {0};

    if (!model) {
        return;
    }
    struct ref_blocks blocks = ref_all_blocks(model);

    for (size_t i = 0; i < blocks.count; i++) {
        if (!blocks.item[i]->prev) {
            ref_blocks_push(&heads, blocks.item[i]);
        }
    }
    free(blocks.item);
    fini_pool(&model->large, &heads);
    fini_pool(&model->small, &heads);
    while (model->privates) {
        struct ref_private *private = model->privates;

        model->privates = private->next;
        fini_pool(&private->small, &heads);
        fini_pool(&private->large, &heads);
        free(private);
    }
    for (size_t i = 0; i < heads.count; i++) {
        delete_ranges(model, heads.item[i]);
    }
    fini_queues(model);
    free(heads.item);
    free(model->active.item);
    free(model->deferred.item);
    free(model->captures);
    free(model->created);
    free(model->events);
    free(model);
}
