/* SPDX-License-Identifier: MIT */
#include "alloc/engine/rebuild_layout.h"

#include "alloc/engine/core_check.h"
#include "alloc/engine/ladder.h"
#include "alloc/engine/native.h"
#include "alloc/pool/growth.h"
#include "alloc/pool/segment.h"

static void allocate_all(struct tn_engine *engine, struct tn_block *block,
                         const struct tn_layout_block *pieces, uint64_t count, uint64_t stack)
{
    struct tn_block *at = block;

    for (uint64_t i = 0; i < count; i++) {
        tn_assert(at && tn_block_is_idle(at) && at->size >= pieces[i].size);
        tn_pool_remove(at);
        (void)tn_heap_mark_allocated(&engine->heap, &engine->heap.shard, at, pieces[i].size,
                                     pieces[i].requested, at->size > pieces[i].size,
                                     tn_heap_keep_stack(&engine->heap, stack));
        at = at->next;
    }
}

static void take_back(struct tn_engine *engine, struct tn_block *block)
{
    const enum tarn_status st = tn_native_free_locked(engine, block, 0, NULL);

    tn_assert(st == TARN_OK); /* it has no uses */
    (void)st;
}

/* The block of a piece that is still allocated. Neighbours that were freed may have been merged or
 * split since, so it is found by its address, not by counting nodes. */
static struct tn_block *piece_find(const struct tn_engine *engine, tarn_ptr address)
{
    struct tn_block *block = tn_heap_find(&engine->heap, address);

    tn_assert(block);
    return block;
}

static void free_pieces(struct tn_engine *engine, tarn_ptr address,
                        const struct tn_layout_block *pieces, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (!pieces[i].allocated && !pieces[i].unmapped) {
            take_back(engine, piece_find(engine, address));
        }
        address += pieces[i].size;
    }
}

/* While all their neighbours are allocated, so that nothing else is unmapped. */
static enum tarn_status unmap_pieces(struct tn_engine *engine, tarn_ptr address,
                                     const struct tn_layout_block *pieces, uint64_t count,
                                     struct tarn_error *error)
{
    enum tarn_status st = TARN_OK;

    for (uint64_t i = 0; i < count && st == TARN_OK; i++) {
        if (pieces[i].unmapped) {
            struct tn_block *block = piece_find(engine, address);

            take_back(engine, block);
            st = tn_expandable_unmap(&engine->heap, block, UINT64_MAX, 0, error);
        }
        address += pieces[i].size;
    }
    return st;
}

void tn_rebuild_layout(struct tn_engine *engine, struct tn_block *block,
                       const struct tn_layout_block *pieces, uint64_t count, uint64_t stack)
{
    const tarn_ptr address = block->address;

    allocate_all(engine, block, pieces, count, stack);
    free_pieces(engine, address, pieces, count);
}

static enum tarn_status rebuild_segment_locked(struct tn_engine *engine,
                                               const struct tn_layout_segment *segment,
                                               const struct tn_layout_block *pieces, uint64_t count,
                                               tarn_ptr *address_out, struct tarn_error *error)
{
    struct tn_pool *pool = segment->is_small ? &engine->heap.small : &engine->heap.large;
    struct tn_free_set *set = tn_pool_get_set(pool, segment->stream);
    struct tn_block *block = NULL;

    if (!set || !tn_ptr_map_reserve(&engine->heap.shard.map, count) ||
        !tn_heap_reserve_spares(&engine->heap, &engine->heap.shard, (uint32_t)count + 2)) {
        return tn_fail_memory(error);
    }
    const enum tarn_status st =
        segment->expandable
            ? tn_expandable_alloc(&engine->heap, set, segment->size, 0, &block, error)
            : tn_ladder_take_segment(engine, set, segment->size, 0, &block, error);

    if (st) {
        return st;
    }
    const tarn_ptr address = block->address;

    tn_pool_insert(block);
    allocate_all(engine, block, pieces, count, 0);
    const enum tarn_status unmapped = unmap_pieces(engine, address, pieces, count, error);

    free_pieces(engine, address, pieces, count);
    *address_out = address;
    return unmapped;
}

enum tarn_status tn_rebuild_segment(struct tn_engine *engine,
                                    const struct tn_layout_segment *segment,
                                    const struct tn_layout_block *pieces, uint64_t count,
                                    tarn_ptr *address_out, struct tarn_error *error)
{
    tn_engine_lock(engine);
    const enum tarn_status st =
        rebuild_segment_locked(engine, segment, pieces, count, address_out, error);

    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}
