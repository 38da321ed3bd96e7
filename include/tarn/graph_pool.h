/* SPDX-License-Identifier: MIT */
/*
 * Private pools: memory kept apart for captured graphs, whose addresses must not be reused
 * elsewhere while the graph may be replayed, or at the user's request.
 *
 * Pools are reference-counted: begin_pool and acquire_pool add a use, release_pool drops one. After
 * the last release, free memory of the pool returns to the device on the next empty_cache or when
 * memory runs short, and the pool is destroyed with its last segment.
 *
 * Every function may be called from any thread.
 */
#ifndef TARN_GRAPH_POOL_H
#define TARN_GRAPH_POOL_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_allocator;
struct tarn_checkpoint;

/* Id of a pool; {0, 0} is the default pool. As in PyTorch's MempoolId_t, only `first` is nonzero
 * for a pool that a capture created for itself, only `second` for a MemPool and a graph's pool
 * handle. */
struct tarn_pool_id {
    uint64_t first;
    uint64_t second;
};

/* Whether a request on the stream is served from the pool. Called with the allocator's lock held:
 * it must not call the allocator. */
typedef bool (*tarn_pool_filter)(void *context, tarn_stream stream);

/* Starts routing requests that the filter accepts to the pool, which is created if it does not
 * exist. If several filters accept, the most recent one wins. While a capture may be in progress,
 * frees of blocks with recorded streams are deferred and the cache is not flushed: under rules:2.11
 * while any routing is active, under rules:2.14 between tarn_allocator_begin_capture and
 * tarn_allocator_end_capture. With graph_capture_record_stream_reuse a deferred block can be reused
 * on its stream once the captured graph orders the stream's next work after all uses of the block.
 * Fails with TARN_ERR_STATE when requests are already routed to this pool. */
TARN_API enum tarn_status tarn_allocator_begin_pool(struct tarn_allocator *allocator,
                                                    struct tarn_pool_id id, tarn_pool_filter filter,
                                                    void *context,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Stops routing; the use that begin_pool added remains. TARN_ERR_STATE when no requests are routed
 * to the pool. */
TARN_API enum tarn_status tarn_allocator_end_pool(struct tarn_allocator *allocator,
                                                  struct tarn_pool_id id,
                                                  struct tarn_error *error) TARN_MUST_CHECK;

/* For the end of a capture under backend:cudaMallocAsync, which frees blocks on streams: makes
 * `stream`, the one that captures, wait for all on which blocks were freed between the last
 * tarn_allocator_begin_pool and the end of that routing. Call it while the capture itself is still
 * under way: CUDA ends none of which other streams have become part that are not joined with it.
 * PyTorch's endAllocateToPool does so. Other backends free on no stream: TARN_OK, and nothing
 * happens. TARN_ERR_DEVICE, TARN_ERR_HOST_MEMORY; then it may be called again. */
TARN_API enum tarn_status tarn_allocator_join_frees(struct tarn_allocator *allocator,
                                                    tarn_stream stream,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* A capture on the allocator's device has begun; it is about to end. As PyTorch's markCaptureBegin
 * and markCaptureEnd: begin it after the routing and after the capture itself, and end it before
 * the routing. Captures may overlap. Matters under rules:2.14 only, where every capture must be
 * announced. TARN_ERR_STATE when no capture is under way. */
TARN_API enum tarn_status tarn_allocator_begin_capture(struct tarn_allocator *allocator,
                                                       struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_allocator_end_capture(struct tarn_allocator *allocator,
                                                     struct tarn_error *error) TARN_MUST_CHECK;

/* Add a use, creating the pool if it does not exist; drop a use. */
TARN_API enum tarn_status tarn_allocator_acquire_pool(struct tarn_allocator *allocator,
                                                      struct tarn_pool_id id,
                                                      struct tarn_error *error) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_allocator_release_pool(struct tarn_allocator *allocator,
                                                      struct tarn_pool_id id,
                                                      struct tarn_error *error) TARN_MUST_CHECK;

/* Where a pool gets its segments, in place of the device: as a torch.cuda.MemPool with an allocator
 * of its own. `alloc` returns memory of the allocator's device that is not in use, 0 = out of
 * memory. It is called without the allocator's lock, `free` and `gone` with it: these two must not
 * call the allocator. */
struct tarn_pool_source {
    uint32_t struct_size; /* sizeof(struct tarn_pool_source) */
    void *context;
    tarn_ptr (*alloc)(void *context, uint64_t size, tarn_stream stream);
    void (*free)(void *context, tarn_ptr ptr);
    void (*gone)(void *context); /* the pool no longer exists; may be NULL */
};

/* As tarn_allocator_acquire_pool, and the pool, which must be new, gets its segments from there.
 * They are never expandable. The struct is copied. TARN_ERR_STATE when the pool exists, and
 * TARN_ERR_INVALID_ARGUMENT for an incomplete source. */
TARN_API enum tarn_status tarn_allocator_create_pool_from(struct tarn_allocator *allocator,
                                                          struct tarn_pool_id id,
                                                          const struct tarn_pool_source *source,
                                                          struct tarn_error *error) TARN_MUST_CHECK;

/* Number of uses of a pool; 0 when it does not exist or has been released. */
TARN_API uint64_t tarn_allocator_pool_use_count(struct tarn_allocator *allocator,
                                                struct tarn_pool_id id);

/* use_on_oom: the pool may serve requests of the default pool as a last resort before cached memory
 * is released. no_split: its blocks are never split. TARN_ERR_NOT_FOUND when it does not exist. */
TARN_API enum tarn_status tarn_allocator_set_pool_use_on_oom(struct tarn_allocator *allocator,
                                                             struct tarn_pool_id id,
                                                             bool use_on_oom) TARN_MUST_CHECK;
TARN_API enum tarn_status tarn_allocator_set_pool_no_split(struct tarn_allocator *allocator,
                                                           struct tarn_pool_id id,
                                                           bool no_split) TARN_MUST_CHECK;

/* Returns the free memory of a released pool to the device; {0, 0} is
 * tarn_allocator_empty_cache. */
TARN_API enum tarn_status tarn_allocator_empty_pool(struct tarn_allocator *allocator,
                                                    struct tarn_pool_id id,
                                                    struct tarn_error *error) TARN_MUST_CHECK;

/* Records the blocks of the pool and which of them are allocated. Caller owns *checkpoint_out, free
 * with tarn_checkpoint_destroy. Fails when the pool does not exist or has blocks that wait for
 * streams. */
TARN_API enum tarn_status tarn_allocator_get_checkpoint(struct tarn_allocator *allocator,
                                                        struct tarn_pool_id id,
                                                        struct tarn_checkpoint **checkpoint_out,
                                                        struct tarn_error *error) TARN_MUST_CHECK;
TARN_API void tarn_checkpoint_destroy(struct tarn_checkpoint *checkpoint);

/* The effect of restoring a checkpoint: freed pointers and newly allocated ones. */
struct tarn_checkpoint_delta {
    tarn_ptr *freed;
    size_t freed_count;
    tarn_ptr *created;
    size_t created_count;
};

/* Restores the pool to the checkpoint: frees every allocated block, then allocates those of the
 * checkpoint at their addresses. Segments added since then stay, completely free. Caller owns
 * *delta_out, release with tarn_checkpoint_delta_fini. */
TARN_API enum tarn_status tarn_allocator_set_checkpoint(struct tarn_allocator *allocator,
                                                        const struct tarn_checkpoint *checkpoint,
                                                        struct tarn_checkpoint_delta *delta_out,
                                                        struct tarn_error *error) TARN_MUST_CHECK;
TARN_API void tarn_checkpoint_delta_fini(struct tarn_checkpoint_delta *delta);

/* Sets *live_out to whether exactly these pointers of the pool are allocated. */
TARN_API enum tarn_status tarn_allocator_check_pool_live(struct tarn_allocator *allocator,
                                                         struct tarn_pool_id id,
                                                         const tarn_ptr *expected, size_t count,
                                                         bool *live_out,
                                                         struct tarn_error *error) TARN_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
