/* SPDX-License-Identifier: MIT */
/* Implements tarn/graph_pool.h: checks arguments, dispatches to the engine. */
#include "tarn/graph_pool.h"

#include "alloc/engine/allocator.h"
#include "alloc/engine/engine_methods.h"
#include "base/sized.h"

enum tarn_status tarn_allocator_begin_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                           tarn_pool_filter filter, void *context,
                                           struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    if (!filter) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "routing to a pool needs a filter");
    }
    return methods->begin_pool ? methods->begin_pool(allocator, id, filter, context, error)
                               : methods->refuse("beginAllocateToPool", error);
}

enum tarn_status tarn_allocator_end_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                         struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->end_pool ? methods->end_pool(allocator, id, error)
                             : methods->refuse("endAllocateToPool", error);
}

enum tarn_status tarn_allocator_join_frees(struct tarn_allocator *allocator, tarn_stream stream,
                                           struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->join_frees ? methods->join_frees(allocator, stream, error) : TARN_OK;
}

enum tarn_status tarn_allocator_begin_capture(struct tarn_allocator *allocator,
                                              struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->mark_capture ? methods->mark_capture(allocator, true, error)
                                 : methods->refuse("markCaptureBegin", error);
}

enum tarn_status tarn_allocator_end_capture(struct tarn_allocator *allocator,
                                            struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->mark_capture ? methods->mark_capture(allocator, false, error)
                                 : methods->refuse("markCaptureEnd", error);
}

enum tarn_status tarn_allocator_acquire_pool(struct tarn_allocator *allocator,
                                             struct tarn_pool_id id, struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->acquire_pool ? methods->acquire_pool(allocator, id, error)
                                 : methods->refuse("createOrIncrefPool", error);
}

enum tarn_status tarn_allocator_create_pool_from(struct tarn_allocator *allocator,
                                                 struct tarn_pool_id id,
                                                 const struct tarn_pool_source *source,
                                                 struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    struct tarn_pool_source known = {0};

    if (!tn_sized_read(&known, sizeof known, source) || !known.alloc || !known.free) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the source of a pool needs functions to allocate and to free, and the "
                       "right size");
    }
    return methods->create_pool_from ? methods->create_pool_from(allocator, id, &known, error)
                                     : methods->refuse("createOrIncrefPool", error);
}

enum tarn_status tarn_allocator_release_pool(struct tarn_allocator *allocator,
                                             struct tarn_pool_id id, struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->release_pool ? methods->release_pool(allocator, id, error)
                                 : methods->refuse("releasePool", error);
}

uint64_t tarn_allocator_pool_use_count(struct tarn_allocator *allocator, struct tarn_pool_id id)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->pool_use_count ? methods->pool_use_count(allocator, id) : 0;
}

enum tarn_status tarn_allocator_set_pool_use_on_oom(struct tarn_allocator *allocator,
                                                    struct tarn_pool_id id, bool use_on_oom)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->set_pool_use_on_oom ? methods->set_pool_use_on_oom(allocator, id, use_on_oom)
                                        : methods->refuse("setUseOnOOM", NULL);
}

enum tarn_status tarn_allocator_set_pool_no_split(struct tarn_allocator *allocator,
                                                  struct tarn_pool_id id, bool no_split)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->set_pool_no_split ? methods->set_pool_no_split(allocator, id, no_split)
                                      : methods->refuse("setNoSplit", NULL);
}

enum tarn_status tarn_allocator_empty_pool(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                           struct tarn_error *error)
{
    return allocator->methods->empty_cache(allocator, id, error);
}

enum tarn_status tarn_allocator_get_checkpoint(struct tarn_allocator *allocator,
                                               struct tarn_pool_id id,
                                               struct tarn_checkpoint **checkpoint_out,
                                               struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->get_checkpoint ? methods->get_checkpoint(allocator, id, checkpoint_out, error)
                                   : methods->refuse("getCheckpointState", error);
}

enum tarn_status tarn_allocator_set_checkpoint(struct tarn_allocator *allocator,
                                               const struct tarn_checkpoint *checkpoint,
                                               struct tarn_checkpoint_delta *delta_out,
                                               struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->set_checkpoint
               ? methods->set_checkpoint(allocator, checkpoint, delta_out, error)
               : methods->refuse("setCheckpointPoolState", error);
}

enum tarn_status tarn_allocator_check_pool_live(struct tarn_allocator *allocator,
                                                struct tarn_pool_id id, const tarn_ptr *expected,
                                                size_t count, bool *live_out,
                                                struct tarn_error *error)
{
    const struct tn_engine_methods *methods = allocator->methods;

    return methods->check_pool_live
               ? methods->check_pool_live(allocator, id, expected, count, live_out, error)
               : methods->refuse("checkPoolLiveAllocations", error);
}
