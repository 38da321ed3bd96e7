/* SPDX-License-Identifier: MIT */
/*
 * Checkpoints of a private pool: the blocks of its segments at one point in time, so that the
 * pool can be restored before another graph is captured (PyTorch's getCheckpointState and
 * setCheckpointPoolState).
 *
 * Restoring frees every block that is allocated, then allocates all blocks of every segment of the
 * checkpoint in address order and frees those that were free in it. That order is PyTorch's: events
 * and peaks depend on it. Everything that can fail is checked or reserved first.
 */
#ifndef TN_ALLOC_ENGINE_CHECKPOINT_H
#define TN_ALLOC_ENGINE_CHECKPOINT_H

#include "alloc/engine/engine.h"
#include "alloc/engine/rebuild_layout.h"
#include "tarn/graph_pool.h"

/* One contiguous range of mapped blocks. */
struct tn_checkpoint_range {
    uint64_t address;
    uint64_t first_block; /* index in the checkpoint's blocks */
    uint64_t block_count;
    tarn_stream stream; /* of its blocks */
    bool is_small;      /* which of the two pools */
};

struct tarn_checkpoint {
    struct tarn_pool_id id;
    struct tn_checkpoint_range *ranges;
    uint64_t range_count;
    struct tn_layout_block *blocks; /* restored with their rounded size as the requested one */
    uint64_t block_count;
};

/* The order in which segments are restored; PyTorch's is that of a hash table. Addresses inside the
 * segments, in the order wanted; segments that contain none of them follow by address. All zero: by
 * address. */
struct tn_checkpoint_order {
    const uint64_t *freed;
    uint64_t freed_count;
    const uint64_t *created;
    uint64_t created_count;
};

/* Both take the engine's lock. */
enum tarn_status tn_checkpoint_get(struct tn_engine *engine, struct tarn_pool_id id,
                                   struct tarn_checkpoint **checkpoint_out,
                                   struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_checkpoint_set(struct tn_engine *engine,
                                   const struct tarn_checkpoint *checkpoint,
                                   const struct tn_checkpoint_order *order,
                                   struct tarn_checkpoint_delta *delta_out,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* Whether exactly the expected pointers are allocated from the pool; takes the lock. */
enum tarn_status tn_checkpoint_check_live(struct tn_engine *engine, struct tarn_pool_id id,
                                          const tarn_ptr *expected, size_t count, bool *live_out,
                                          struct tarn_error *error) TN_MUST_CHECK;

#endif
