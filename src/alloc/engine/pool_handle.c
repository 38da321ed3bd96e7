/* SPDX-License-Identifier: MIT */
/*
 * Implements tarn/pool.h. A handle owns one use of a private pool and one pin, so that the pool
 * outlives the handle whatever is released by id. Its id has a bit that no id of a graph or a
 * MemPool has: these count up from 1.
 */
#include "alloc/engine/pool_handle.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/core_check.h"
#include "alloc/engine/gc.h"
#include "alloc/engine/native.h"
#include "alloc/engine/visit.h"
#include "base/host_mem.h"
#include "base/sized.h"

#include <string.h>

/* Below 2^53, so that every reader of JSON keeps it whole. */
#define HANDLE_ID ((uint64_t)1 << 48)

static struct tn_engine *engine_of(const struct tarn_pool *pool)
{
    return tn_allocator_engine(pool->allocator);
}

/* ---- lifetime ---- */

static enum tarn_status options_read(const struct tarn_pool_options *given,
                                     struct tarn_pool_options *options,
                                     struct tarn_pool_source *source, struct tarn_error *error)
{
    *options = (struct tarn_pool_options){.struct_size = sizeof *options};
    if (given && !tn_sized_read(options, sizeof *options, given)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "struct_size of the pool's options is not set");
    }
    if (options->name && strlen(options->name) >= TARN_POOL_NAME_MAX) {
        return tn_fail(error, TARN_ERR_LIMIT, "the name of a pool is longer than %d bytes",
                       TARN_POOL_NAME_MAX - 1);
    }
    *source = (struct tarn_pool_source){0};
    if (options->source && (!tn_sized_read(source, sizeof *source, options->source) ||
                            !source->alloc || !source->free)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the source of a pool needs functions to allocate and to free, and the "
                       "right size");
    }
    return TARN_OK;
}

static struct tarn_pool_id next_id(struct tn_engine *engine)
{
    struct tarn_pool_id id;

    do {
        id = (struct tarn_pool_id){0, HANDLE_ID + ++engine->pools_made};
    } while (tn_private_pool_find(&engine->heap.private_pools, id));
    return id;
}

static uint64_t limit_of(uint64_t wanted)
{
    return wanted ? wanted : TARN_SIZE_UNLIMITED;
}

/* Under the lock. */
static enum tarn_status handle_open(struct tn_engine *engine, struct tarn_pool *handle,
                                    const struct tarn_pool_options *options,
                                    const struct tarn_pool_source *source, struct tarn_error *error)
{
    struct tn_private_pools *pools = &engine->heap.private_pools;
    const struct tarn_pool_id id = next_id(engine);
    const enum tarn_status st = tn_private_pool_create_from(pools, id, source, error);

    if (st == TARN_OK) {
        struct tn_private_pool *pool = tn_private_pool_find(pools, id);

        pool->pins++;
        pool->open = true;
        pool->pages_stay = options->pages_stay;
        pool->limit = limit_of(options->limit);
        pool->priority = options->priority;
        pool->no_split = options->no_split;
        pool->use_on_oom = options->use_on_oom;
        memcpy(pool->name, options->name ? options->name : "",
               options->name ? strlen(options->name) + 1 : 1);
        handle->pool = pool;
    }
    return st;
}

enum tarn_status tarn_pool_create(struct tarn_allocator *allocator,
                                  const struct tarn_pool_options *given,
                                  struct tarn_pool **pool_out, struct tarn_error *error)
{
    struct tarn_pool_options options;
    struct tarn_pool_source source;
    struct tn_engine *engine = NULL;
    enum tarn_status st = tn_allocator_need_engine(allocator, "a pool", &engine, error);

    st = st ? st : options_read(given, &options, &source, error);
    if (st) {
        return st;
    }
    struct tarn_pool *handle = tn_host_alloc_zero(sizeof *handle);

    if (!handle) {
        return tn_fail_memory(error);
    }
    handle->allocator = allocator;
    tn_engine_lock(engine);
    st = handle_open(engine, handle, &options, &source, error);
    tn_engine_unlock(engine);
    if (st) {
        tn_host_free(handle, sizeof *handle);
        return st;
    }
    *pool_out = handle;
    return TARN_OK;
}

void tarn_pool_destroy(struct tarn_pool *handle)
{
    if (!handle) {
        return;
    }
    if (tn_allocator_is_native(handle->allocator)) { /* else in a forked child */
        struct tn_engine *engine = engine_of(handle);
        const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_ALL);

        tn_engine_lock(engine);
        const struct tarn_pool_id id = handle->pool->id;

        handle->pool->pins--;
        handle->pool->open = false;
        if (tn_private_pool_release(&engine->heap.private_pools, id, NULL) == TARN_OK) {
            (void)!tn_gc_release_cached(engine, id, stack, NULL); /* later, if not now */
        }
        tn_heap_drop_captured(&engine->heap, stack);
        tn_core_assert(engine);
        tn_engine_unlock(engine);
    }
    tn_host_free(handle, sizeof *handle);
}

/* ---- memory ---- */

/* Who has no pools: a forked child. */
static TN_COLD enum tarn_status refuse(const struct tarn_pool *pool, struct tarn_error *error)
{
    struct tn_engine *engine;

    return tn_allocator_need_engine(pool->allocator, "a pool", &engine, error);
}

enum tarn_status tarn_pool_alloc(struct tarn_pool *pool, uint64_t size, tarn_stream stream,
                                 tarn_ptr *ptr_out, struct tarn_error *error)
{
    if (tn_unlikely(size == 0)) {
        *ptr_out = 0;
        return TARN_OK;
    }
    return tn_likely(tn_allocator_is_native(pool->allocator))
               ? tn_native_alloc_in(engine_of(pool), pool->pool, size, stream, ptr_out, error)
               : refuse(pool, error);
}

enum tarn_status tarn_pool_trim(struct tarn_pool *pool, uint64_t target, uint64_t *reserved_out,
                                struct tarn_error *error)
{
    struct tn_engine *engine = NULL;
    enum tarn_status st = tn_allocator_need_engine(pool->allocator, "a pool", &engine, error);

    if (st) {
        return st;
    }
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_ALL);

    tn_engine_lock(engine);
    st = tn_gc_trim_pool(engine, pool->pool, target, stack, error);
    if (reserved_out) {
        *reserved_out = pool->pool->reserved;
    }
    tn_heap_drop_captured(&engine->heap, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}

enum tarn_status tarn_pool_set_limit(struct tarn_pool *pool, uint64_t limit,
                                     struct tarn_error *error)
{
    struct tn_engine *engine = NULL;
    const enum tarn_status st = tn_allocator_need_engine(pool->allocator, "a pool", &engine, error);

    if (st) {
        return st;
    }
    tn_engine_lock_for(engine, TN_FLUSH_COUNTERS);
    pool->pool->limit = limit_of(limit);
    tn_engine_unlock(engine);
    return TARN_OK;
}

/* ---- what is known about it ---- */

static bool add_segment(void *context, const struct tarn_segment_info *segment)
{
    struct tarn_pool_stats *stats = context;

    stats->segments++;
    stats->allocated += segment->allocated_size;
    stats->active += segment->active_size;
    stats->requested += segment->requested_size;
    return true;
}

static bool add_block(void *context, const struct tarn_block_info *block)
{
    struct tarn_pool_stats *stats = context;

    stats->blocks += block->allocated;
    return true;
}

enum tarn_status tarn_pool_get_stats(struct tarn_pool *pool, struct tarn_pool_stats *stats_out)
{
    struct tarn_pool_stats stats = {0};
    const struct tarn_walker walker = {
        .context = &stats, .segment = add_segment, .block = add_block};
    struct tn_engine *engine = NULL;
    const enum tarn_status st = tn_allocator_need_engine(pool->allocator, "a pool", &engine, NULL);

    if (st) {
        return st;
    }
    if (!tn_sized_is_set(stats_out)) {
        return TARN_ERR_INVALID_ARGUMENT;
    }
    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    stats.priority = pool->pool->priority;
    stats.limit = pool->pool->limit;
    stats.reserved = pool->pool->reserved;
    stats.reserved_peak = pool->pool->reserved_peak;
    tn_visit_pool(engine, pool->pool->id, &walker);
    tn_engine_unlock(engine);
    tn_sized_write(stats_out, stats_out->struct_size, &stats, sizeof stats);
    return TARN_OK;
}

struct tarn_allocator *tarn_pool_get_allocator(const struct tarn_pool *pool)
{
    return pool->allocator;
}

struct tarn_pool_id tarn_pool_get_id(const struct tarn_pool *pool)
{
    return pool->pool->id;
}

const char *tarn_pool_get_name(const struct tarn_pool *pool)
{
    return pool->pool->name;
}
