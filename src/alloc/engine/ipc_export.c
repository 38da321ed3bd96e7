/* SPDX-License-Identifier: MIT */
#include "alloc/engine/ipc_export.h"

#include "alloc/engine/direct_memory.h"
#include "alloc/engine/engine.h"
#include "alloc/pool/expandable.h"
#include "alloc/pool/segment.h"

/* Shares the whole segment, because the driver cannot share a part of what it allocated. */
static enum tarn_status export_plain(struct tn_engine *engine, const struct tn_segment *segment,
                                     const struct tn_block *block, struct tn_ipc_buffer *buffer,
                                     struct tarn_error *error)
{
    struct tarn_device *device = engine->heap.device;
    const struct tn_ipc_part part = {.ordinal = device->ordinal,
                                     .offset = block->address - segment->address,
                                     .size = block->size,
                                     .extent = segment->size};
    struct tn_ipc_handle handle;
    const enum tarn_status st = device->ops->ipc_export(device, segment->address, &handle);

    if (st) {
        return tn_heap_device_failed(&engine->heap, st, "sharing memory", error);
    }
    tn_ipc_write_plain(buffer, &part, &handle);
    return TARN_OK;
}

/* The pages that hold the block. */
static enum tarn_status export_pages(struct tn_engine *engine, const struct tn_segment *segment,
                                     const struct tn_block *block, struct tn_ipc_buffer *buffer,
                                     struct tarn_error *error)
{
    const uint64_t page_size = segment->expandable->page_size;
    const uint64_t at = block->address - segment->address;
    const uint64_t begin = at / page_size;
    const uint64_t end = (at + block->size + page_size - 1) / page_size;
    const struct tn_ipc_part part = {.ordinal = engine->heap.device->ordinal,
                                     .offset = at - begin * page_size,
                                     .size = block->size,
                                     .extent = (end - begin) * page_size};
    const int *descriptors = NULL;
    const enum tarn_status st =
        tn_expandable_export(&engine->heap, segment, begin, end, &descriptors, error);

    if (st == TARN_OK) {
        tn_assert(descriptors);
        tn_ipc_write_pages(buffer, &part, page_size, descriptors);
    }
    return st;
}

enum tarn_status tn_native_ipc_export(struct tn_engine *engine, tarn_ptr ptr,
                                      struct tn_ipc_buffer *buffer, struct tarn_error *error)
{
    enum tarn_status st;

    tn_engine_lock_for(engine, TN_FLUSH_BLOCKS);
    const struct tn_block *block = tn_heap_find(&engine->heap, ptr);

    if (!block) {
        st = tn_pointer_unknown(ptr, error);
    } else {
        const struct tn_segment *segment = tn_segment_find(&engine->heap, ptr);

        st = tn_private_pool_check_awake(block->set->pool->owner, error);
        st = st                    ? st
             : segment->expandable ? export_pages(engine, segment, block, buffer, error)
                                   : export_plain(engine, segment, block, buffer, error);
    }
    tn_engine_unlock(engine);
    return st;
}
