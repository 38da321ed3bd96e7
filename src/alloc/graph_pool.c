/* SPDX-License-Identifier: MIT */
/* Implements tarn/graph_pool.h over private_pool.h and checkpoint.h. */
#include "tarn/graph_pool.h"

#include "alloc/allocator.h"
#include "alloc/checkpoint.h"
#include "alloc/core_check.h"
#include "alloc/engine_native.h"
#include "alloc/visit.h"

enum tarn_status tarn_allocator_begin_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                           tarn_pool_filter filter, void *context,
                                           struct tarn_error *error)
{
    struct tn_engine *engine = &allocator->engine;
    enum tarn_status st;

    if (!filter) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "routing to a pool needs a filter");
    }
    tn_lock_acquire(&engine->lock);
    st = tn_private_pool_begin(engine, id, filter, context, error);
    tn_lock_release(&engine->lock);
    return st;
}

enum tarn_status tarn_allocator_end_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                         struct tarn_error *error)
{
    struct tn_engine *engine = &allocator->engine;
    enum tarn_status st;

    tn_lock_acquire(&engine->lock);
    st = tn_private_pool_end(engine, id, error);
    tn_lock_release(&engine->lock);
    return st;
}

enum tarn_status tarn_allocator_acquire_pool(struct tarn_allocator *allocator,
                                             struct tarn_pool_id id, struct tarn_error *error)
{
    struct tn_engine *engine = &allocator->engine;
    enum tarn_status st;

    tn_lock_acquire(&engine->lock);
    st = tn_private_pool_acquire(engine, id, error);
    tn_lock_release(&engine->lock);
    return st;
}

enum tarn_status tarn_allocator_release_pool(struct tarn_allocator *allocator,
                                             struct tarn_pool_id id, struct tarn_error *error)
{
    struct tn_engine *engine = &allocator->engine;
    enum tarn_status st;

    tn_lock_acquire(&engine->lock);
    st = tn_private_pool_release(engine, id, error);
    tn_lock_release(&engine->lock);
    return st;
}

uint64_t tarn_allocator_pool_use_count(struct tarn_allocator *allocator, struct tarn_pool_id id)
{
    struct tn_engine *engine = &allocator->engine;
    uint64_t count;

    tn_lock_acquire(&engine->lock);
    const struct tn_private_pool *pool = tn_private_pool_find(engine, id);

    count = pool ? (uint64_t)pool->use_count : 0;
    tn_lock_release(&engine->lock);
    return count;
}

enum tarn_status tarn_allocator_set_pool_use_on_oom(struct tarn_allocator *allocator,
                                                    struct tarn_pool_id id, bool use_on_oom)
{
    struct tn_engine *engine = &allocator->engine;

    tn_lock_acquire(&engine->lock);
    struct tn_private_pool *pool = tn_private_pool_find(engine, id);

    if (pool) {
        pool->use_on_oom = use_on_oom;
    }
    tn_lock_release(&engine->lock);
    return pool ? TARN_OK : TARN_ERR_NOT_FOUND;
}

enum tarn_status tarn_allocator_set_pool_no_split(struct tarn_allocator *allocator,
                                                  struct tarn_pool_id id, bool no_split)
{
    struct tn_engine *engine = &allocator->engine;

    tn_lock_acquire(&engine->lock);
    struct tn_private_pool *pool = tn_private_pool_find(engine, id);

    if (pool) {
        pool->no_split = no_split;
    }
    tn_lock_release(&engine->lock);
    return pool ? TARN_OK : TARN_ERR_NOT_FOUND;
}

enum tarn_status tarn_allocator_empty_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                           struct tarn_error *error)
{
    return tn_native_empty_cache(&allocator->engine, id, error);
}

enum tarn_status tarn_allocator_get_checkpoint(struct tarn_allocator *allocator,
                                               struct tarn_pool_id id,
                                               struct tarn_checkpoint **checkpoint_out,
                                               struct tarn_error *error)
{
    return tn_checkpoint_get(&allocator->engine, id, checkpoint_out, error);
}

enum tarn_status tarn_allocator_set_checkpoint(struct tarn_allocator *allocator,
                                               const struct tarn_checkpoint *checkpoint,
                                               struct tarn_checkpoint_delta *delta_out,
                                               struct tarn_error *error)
{
    const struct tn_checkpoint_order by_address = {0};

    return tn_checkpoint_set(&allocator->engine, checkpoint, &by_address, delta_out, error);
}

enum tarn_status tarn_allocator_check_pool_live(struct tarn_allocator *allocator,
                                                struct tarn_pool_id id, const tarn_ptr *expected,
                                                size_t count, bool *live_out,
                                                struct tarn_error *error)
{
    return tn_checkpoint_check_live(&allocator->engine, id, expected, count, live_out, error);
}

enum tarn_status tarn_allocator_walk_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                          const struct tarn_walker *walker)
{
    struct tn_engine *engine = &allocator->engine;

    tn_lock_acquire(&engine->lock);
    tn_visit_pool(engine, id, walker);
    tn_lock_release(&engine->lock);
    return TARN_OK;
}
