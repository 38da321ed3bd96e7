/* SPDX-License-Identifier: MIT */
#include "alloc/carve.h"

#include "alloc/core_check.h"
#include "alloc/engine_native.h"
#include "alloc/segment.h"

void tn_carve(struct tn_engine *engine, struct tn_block *block, const struct tn_carve_piece *pieces,
              uint64_t count, uint64_t stack)
{
    struct tn_block *at = block;

    for (uint64_t i = 0; i < count; i++) {
        tn_assert(at && tn_block_is_idle(at) && at->size >= pieces[i].size);
        tn_engine_unfile(engine, at);
        (void)tn_native_hand_out(engine, at, pieces[i].size, pieces[i].requested,
                                 at->size > pieces[i].size, tn_engine_keep_stack(engine, stack));
        at = at->next;
    }
    at = block;
    for (uint64_t i = 0; i < count; i++) {
        struct tn_block *next = at->next; /* handed out still: its node stays */

        if (!pieces[i].allocated) {
            const enum tarn_status st = tn_native_free_locked(engine, at, 0, NULL);

            tn_assert(st == TARN_OK); /* it has no uses */
            (void)st;
        }
        at = next;
    }
}

static enum tarn_status carve_segment_locked(struct tn_engine *engine, uint64_t size,
                                             tarn_stream stream, bool small,
                                             const struct tn_carve_piece *pieces, uint64_t count,
                                             tarn_ptr *address_out, struct tarn_error *error)
{
    struct tn_free_set *set = tn_pool_get_set(small ? &engine->small : &engine->large, stream);
    struct tn_block *block = NULL;

    if (!set || !tn_ptr_map_reserve(&engine->map, count) ||
        !tn_engine_reserve_spares(engine, (uint32_t)count)) {
        return tn_fail(error, TARN_ERR_HOST_MEMORY, "no host memory for a segment's blocks");
    }
    const enum tarn_status st = tn_segment_alloc(engine, set, size, 0, &block, error);

    if (st) {
        return st;
    }
    *address_out = block->address;
    tn_engine_file(engine, block);
    tn_carve(engine, block, pieces, count, 0);
    return TARN_OK;
}

enum tarn_status tn_carve_segment(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                  bool small, const struct tn_carve_piece *pieces, uint64_t count,
                                  tarn_ptr *address_out, struct tarn_error *error)
{
    tn_engine_lock(engine);
    const enum tarn_status st =
        carve_segment_locked(engine, size, stream, small, pieces, count, address_out, error);

    tn_core_assert(engine);
    tn_engine_unlock(engine);
    return st;
}
