/* SPDX-License-Identifier: MIT */
/* Implements tarn/block.h: what is known about one block, sizes, the cache of one stream. */
#include "tarn/block.h"

#include "alloc/config/size_class.h"
#include "alloc/engine/allocator.h"
#include "alloc/engine/core_check.h"
#include "alloc/engine/gc.h"
#include "alloc/pool/segment.h"
#include "base/sized.h"

static struct tarn_block block_describe(const struct tn_engine *engine,
                                        const struct tn_block *block)
{
    const struct tn_segment *segment = tn_segment_find(&engine->heap, block->address);
    const struct tn_private_pool *owner = block->set->pool->owner;
    uint64_t tag = 0;
    void *user = tn_stream_use_user(&engine->waits, block, &tag);

    return (struct tarn_block){
        .is_large = !block->set->pool->is_small,
        .is_expandable = block->expandable,
        .address = block->address,
        .size = block->size,
        .requested = block->requested_size,
        .stream = block->set->stream,
        .pool = owner ? owner->id : (struct tarn_pool_id){0, 0},
        .segment = segment->address,
        .segment_size = segment->size,
        .stack = block->u.stack,
        .user = user,
        .user_tag = tag,
    };
}

enum tarn_status tarn_allocator_find_block(struct tarn_allocator *allocator, tarn_ptr ptr,
                                           struct tarn_block *block_out, struct tarn_error *error)
{
    struct tarn_block found = {0};
    struct tn_engine *engine = NULL;
    const enum tarn_status st =
        tn_allocator_need_engine(allocator, "looking at a block", &engine, error);

    if (st) {
        return st;
    }
    if (!tn_sized_is_set(block_out)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT, "struct_size of the block is not set");
    }
    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    const struct tn_block *block = tn_heap_find(&engine->heap, ptr);

    if (block) {
        found = block_describe(engine, block);
    }
    tn_engine_unlock(engine);
    if (!block) {
        return tn_pointer_unknown(ptr, error);
    }
    tn_sized_write(block_out, block_out->struct_size, &found, sizeof found);
    return TARN_OK;
}

enum tarn_status tarn_allocator_set_user_data(struct tarn_allocator *allocator, tarn_ptr ptr,
                                              void *user, uint64_t tag, struct tarn_error *error)
{
    struct tn_engine *engine = NULL;
    enum tarn_status st = tn_allocator_need_engine(allocator, "data of blocks", &engine, error);

    if (st) {
        return st;
    }
    tn_engine_lock(engine); /* the block leaves the undo logs, which skip blocks with records */
    struct tn_block *block = tn_heap_find(&engine->heap, ptr);

    st = block ? tn_stream_use_set_user(&engine->waits, block, user, tag)
               : tn_pointer_unknown(ptr, error);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st == TARN_ERR_HOST_MEMORY ? tn_fail_memory(error) : st;
}

uint64_t tarn_allocator_usable_size(struct tarn_allocator *allocator, tarn_ptr ptr)
{
    uint64_t size = 0;

    return tarn_allocator_block_size(allocator, ptr, &size, NULL) == TARN_OK ? size : 0;
}

uint64_t tarn_allocator_good_size(struct tarn_allocator *allocator, uint64_t size)
{
    struct tarn_config config;

    if (size >= TN_MAX_REQUEST) {
        return size;
    }
    tarn_allocator_get_config(allocator, &config);
    return tn_round_size(size, &config);
}

enum tarn_status tarn_allocator_release_stream(struct tarn_allocator *allocator, tarn_stream stream,
                                               struct tarn_error *error)
{
    struct tn_engine *engine = NULL;
    enum tarn_status st = tn_allocator_need_engine(allocator, "releasing a stream", &engine, error);

    if (st) {
        return st;
    }
    const uint64_t stack = tn_heap_capture(&engine->heap, TARN_CONTEXT_ALL);

    tn_engine_lock(engine);
    st = tn_gc_release_stream(engine, stream, stack, error);
    tn_heap_drop_captured(&engine->heap, stack);
    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}
