/* SPDX-License-Identifier: MIT */
/*
 * Private pools: memory kept apart for captured graphs (whose addresses must not be handed out to
 * anybody else while the graph may be replayed) or by choice.
 *
 * A pool exists while somebody uses it: begin_pool and acquire_pool add a use, release_pool drops
 * one. After the last one its free memory goes back to the device with the next empty_cache or when
 * memory runs short, and the pool is gone when its last segment is.
 */
#ifndef TARN_GRAPH_POOL_H
#define TARN_GRAPH_POOL_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;
struct tarn_checkpoint;

/* Name of a pool; {0, 0} is the default pool and not a private one. As PyTorch's MempoolId_t: only
 * `first` is not 0 for a pool that a capture made for itself, only `second` for a MemPool and for a
 * graph's pool handle. */
struct tarn_pool_id {
    uint64_t first;
    uint64_t second;
};

/* Whether a request on the stream goes to the pool. Called under the allocator's lock: it must not
 * call the allocator. */
typedef bool (*tarn_pool_filter)(void *context, tarn_stream stream);

/* From now on requests that the filter accepts are served from the pool, which is made when it is
 * new. Of several, the latest that accepts wins. While any routing is on, frees of blocks with
 * recorded streams are deferred and the cache is not flushed: a capture may be under way. With
 * graph_capture_record_stream_reuse a deferred block can be used again on its stream as soon as the
 * graph that the stream is captured into runs the stream's next work after all uses of the block.
 * Fails with TARN_ERR_STATE when requests go to this pool already. */
TARN_API enum tarn_status tarn_allocator_begin_pool(struct tarn_allocator *allocator,
                                                    struct tarn_pool_id id, tarn_pool_filter filter,
                                                    void *context,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Ends that; the pool stays in use. TARN_ERR_STATE when no requests go to the pool. */
TARN_API enum tarn_status tarn_allocator_end_pool(struct tarn_allocator *allocator,
                                                  struct tarn_pool_id id,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* Adds one use, making the pool when it is new; drops one. */
TARN_API enum tarn_status tarn_allocator_acquire_pool(struct tarn_allocator *allocator,
                                                      struct tarn_pool_id id,
                                                      struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_allocator_release_pool(struct tarn_allocator *allocator,
                                                      struct tarn_pool_id id,
                                                      struct tarn_error *error) TARN_MUST_CHECK;

/* Uses of a pool; 0 when it does not exist or nobody uses it any more. */
TARN_API uint64_t tarn_allocator_pool_use_count(struct tarn_allocator *allocator,
                                                struct tarn_pool_id id);

/* The pool may serve requests of the default pool when nothing else is left, before cached memory
 * is given back. Its blocks are handed out whole. TARN_ERR_NOT_FOUND when it does not exist. */
TARN_API enum tarn_status tarn_allocator_set_pool_use_on_oom(struct tarn_allocator *allocator,
                                                             struct tarn_pool_id id,
                                                             bool use_on_oom) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_allocator_set_pool_no_split(struct tarn_allocator *allocator,
                                                           struct tarn_pool_id id,
                                                           bool no_split) TARN_MUST_CHECK;

/* Gives back what is free in one pool that nobody uses; {0, 0} is tarn_allocator_empty_cache. */
TARN_API enum tarn_status tarn_allocator_empty_pool(struct tarn_allocator *allocator,
                                                    struct tarn_pool_id id,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Remembers which blocks of the pool exist and which are handed out. Caller owns *checkpoint_out,
 * free with tarn_checkpoint_destroy. Fails when the pool does not exist, or has blocks that wait
 * for streams. */
TARN_API enum tarn_status tarn_allocator_get_checkpoint(struct tarn_allocator *allocator,
                                                        struct tarn_pool_id id,
                                                        struct tarn_checkpoint **checkpoint_out,
                                                        struct tarn_error *error) TARN_MUST_CHECK;
TARN_API void tarn_checkpoint_destroy(struct tarn_checkpoint *checkpoint);

/* What restoring did: pointers that were freed and pointers that are handed out now. */
struct tarn_checkpoint_delta {
    tarn_ptr *freed;
    size_t freed_count;
    tarn_ptr *created;
    size_t created_count;
};

/* Brings the pool back to the checkpoint: frees every block that is handed out, then hands out
 * those of the checkpoint at their addresses. Segments made since stay, wholly free. *delta_out is
 * the caller's, give back with tarn_checkpoint_delta_fini. */
TARN_API enum tarn_status tarn_allocator_set_checkpoint(struct tarn_allocator *allocator,
                                                        const struct tarn_checkpoint *checkpoint,
                                                        struct tarn_checkpoint_delta *delta_out,
                                                        struct tarn_error *error) TARN_MUST_CHECK;
TARN_API void tarn_checkpoint_delta_fini(struct tarn_checkpoint_delta *delta);

/* Whether exactly these pointers are handed out from the pool. *live_out is the answer. */
TARN_API enum tarn_status tarn_allocator_check_pool_live(struct tarn_allocator *allocator,
                                                         struct tarn_pool_id id,
                                                         const tarn_ptr *expected, size_t count,
                                                         bool *live_out,
                                                         struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
