/* SPDX-License-Identifier: MIT */
/*
 * The interface between the front (allocator.c, graph_pool.c) and an engine: a table of functions.
 * There are four engines: the caching engine (native_methods.c), the stream-ordered one
 * (engine_async.c), the one without a cache (engine_uncached.c) and the one over a shared object
 * (engine_pluggable.c). Each begins its state with struct tarn_allocator. In a forked child a table
 * that refuses everything takes their place (engine_forked.c).
 *
 * Contract of every function unless it says otherwise:
 *   - what the public function of that name promises (tarn/allocator.h, tarn/graph_pool.h) holds;
 *   - the front has checked what is the same for all engines: a size or pointer of 0 never arrives,
 *     nor a NULL filter, nor settings that are incomplete or would change the engine;
 *   - thread-safe: the engine takes its own lock;
 *   - what an engine cannot do fails with TARN_ERR_NOT_SUPPORTED and PyTorch's message, and changes
 *     nothing;
 *   - only entries for pools, pages, caches, sharing and receivers may be NULL, where an engine has
 *     none: the front then does nothing, or calls `refuse`.
 */
#ifndef TN_ALLOC_ENGINE_ENGINE_METHODS_H
#define TN_ALLOC_ENGINE_ENGINE_METHODS_H

#include "tarn/allocator.h"
#include "tarn/graph_pool.h"
#include "tarn/pages.h"
#include "tarn/sleep.h"

struct tn_ipc_buffer;
struct tn_look;
struct tn_observation;

struct tn_engine_methods {
    const char *name;
    const char *backend; /* as tarn_allocator_get_backend */

    /* Fails with TARN_ERR_NOT_SUPPORTED in place of an entry that is NULL; `what` is PyTorch's name
     * of the function. May itself be NULL if no entry is. */
    enum tarn_status (*refuse)(const char *what, struct tarn_error *error);

    /* Gives everything back to the device and frees the state. */
    void (*destroy)(struct tarn_allocator *allocator);

    /* The hot path: one indirect call each. */
    enum tarn_status (*alloc)(struct tarn_allocator *allocator, uint64_t size, tarn_stream stream,
                              tarn_ptr *ptr_out, struct tarn_error *error);
    enum tarn_status (*free)(struct tarn_allocator *allocator, tarn_ptr ptr,
                             struct tarn_error *error);
    /* NULL: the engine does not choose addresses. */
    enum tarn_status (*alloc_at)(struct tarn_allocator *allocator, uint64_t size,
                                 tarn_stream stream, tarn_ptr address, struct tarn_error *error);
    enum tarn_status (*record_stream)(struct tarn_allocator *allocator, tarn_ptr ptr,
                                      tarn_stream stream, struct tarn_error *error);

    /* Writes the message that describes the allocation at `ptr`, if the buffer has room for it.
     * NULL: the engine cannot share. */
    enum tarn_status (*ipc_export)(struct tarn_allocator *allocator, tarn_ptr ptr,
                                   struct tn_ipc_buffer *buffer, struct tarn_error *error);

    /* Of one pool; {0, 0}: of all. */
    enum tarn_status (*empty_cache)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                    struct tarn_error *error);
    /* NULL: nothing is cached. */
    enum tarn_status (*trim)(struct tarn_allocator *allocator, uint64_t target,
                             struct tarn_error *error);
    enum tarn_status (*base_allocation)(struct tarn_allocator *allocator, tarn_ptr ptr,
                                        tarn_ptr *base_out, uint64_t *size_out,
                                        struct tarn_error *error);
    /* NULL: every block is a segment. */
    enum tarn_status (*block_size)(struct tarn_allocator *allocator, tarn_ptr ptr,
                                   uint64_t *size_out, struct tarn_error *error);
    enum tarn_status (*cache_info)(struct tarn_allocator *allocator, uint64_t *largest_in_out,
                                   struct tarn_error *error);

    enum tarn_status (*set_enabled)(struct tarn_allocator *allocator, bool enabled,
                                    struct tarn_error *error);
    bool (*is_enabled)(struct tarn_allocator *allocator);
    enum tarn_status (*set_fraction)(struct tarn_allocator *allocator, double fraction,
                                     struct tarn_error *error);
    uint64_t (*get_limit)(struct tarn_allocator *allocator);
    void (*get_config)(struct tarn_allocator *allocator, struct tarn_config *config_out);
    void (*set_config)(struct tarn_allocator *allocator, const struct tarn_config *config);

    /* *stats_out has its full size and is all zero before. */
    void (*get_stats)(struct tarn_allocator *allocator, struct tarn_stats *stats_out);
    /* NULL: the engine keeps no memory in private pools. */
    size_t (*get_pool_reserved)(struct tarn_allocator *allocator,
                                struct tarn_pool_reserved *reserved_out, size_t room);
    /* NULL: it has no expandable segments. */
    size_t (*get_expandable_segments)(struct tarn_allocator *allocator,
                                      struct tarn_segment_info *segments_out, size_t room);
    /* As get_stats. NULL: the engine has no pages of its own. */
    void (*get_page_stats)(struct tarn_allocator *allocator, struct tarn_page_stats *stats_out);
    /* For a reader outside of the process: what there is to see now, without a wait that others
     * could notice. False when the lock is held for longer. NULL: get_stats has to do. */
    bool (*observe)(struct tarn_allocator *allocator, struct tn_observation *observation);
    void (*reset_peak_stats)(struct tarn_allocator *allocator);
    void (*reset_accumulated_stats)(struct tarn_allocator *allocator);

    uint64_t (*check)(struct tarn_allocator *allocator, struct tarn_findings *findings);
    /* `pool` NULL: all segments. */
    enum tarn_status (*walk)(struct tarn_allocator *allocator, const struct tarn_pool_id *pool,
                             const struct tarn_walker *walker, struct tarn_error *error);
    /* As tn_allocator_look. */
    enum tarn_status (*look)(struct tarn_allocator *allocator, const struct tarn_pool_id *pool,
                             const struct tn_look *look, struct tarn_error *error);
    enum tarn_status (*add_sink)(struct tarn_allocator *allocator, const struct tarn_sink *sink,
                                 struct tarn_error *error);
    enum tarn_status (*set_sink)(struct tarn_allocator *allocator, const void *context, bool on,
                                 enum tarn_context_level level, struct tarn_error *error);
    enum tarn_status (*remove_sink)(struct tarn_allocator *allocator, const void *context,
                                    struct tarn_error *error);
    enum tarn_status (*annotate)(struct tarn_allocator *allocator, tarn_ptr ptr, const char *text,
                                 struct tarn_error *error);
    void (*mark_snapshot)(struct tarn_allocator *allocator);
    enum tarn_status (*add_oom_observer)(struct tarn_allocator *allocator,
                                         tarn_oom_observer observer, void *context);
    enum tarn_status (*add_memory_callback)(struct tarn_allocator *allocator,
                                            tarn_memory_callback callback, void *context);

    /* Pools and checkpoints. */
    enum tarn_status (*begin_pool)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                   tarn_pool_filter filter, void *context,
                                   struct tarn_error *error);
    enum tarn_status (*end_pool)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                 struct tarn_error *error);
    /* NULL: blocks are not freed on streams. */
    enum tarn_status (*join_frees)(struct tarn_allocator *allocator, tarn_stream stream,
                                   struct tarn_error *error);
    /* A capture begins, or ends. */
    enum tarn_status (*mark_capture)(struct tarn_allocator *allocator, bool begins,
                                     struct tarn_error *error);
    enum tarn_status (*acquire_pool)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                     struct tarn_error *error);
    enum tarn_status (*create_pool_from)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                         const struct tarn_pool_source *source,
                                         struct tarn_error *error);
    enum tarn_status (*release_pool)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                     struct tarn_error *error);
    uint64_t (*pool_use_count)(struct tarn_allocator *allocator, struct tarn_pool_id id);
    enum tarn_status (*set_pool_use_on_oom)(struct tarn_allocator *allocator,
                                            struct tarn_pool_id id, bool use_on_oom);
    enum tarn_status (*set_pool_no_split)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                          bool no_split);

    /* *stats_out has its full size and is all zero before. */
    enum tarn_status (*sleep)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                              const struct tarn_sleep_options *options, struct tarn_error *error);
    enum tarn_status (*wake)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                             struct tarn_error *error);
    bool (*is_asleep)(struct tarn_allocator *allocator, struct tarn_pool_id id);
    void (*get_sleep_stats)(struct tarn_allocator *allocator, struct tarn_sleep_stats *stats_out);

    enum tarn_status (*get_checkpoint)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                       struct tarn_checkpoint **checkpoint_out,
                                       struct tarn_error *error);
    enum tarn_status (*set_checkpoint)(struct tarn_allocator *allocator,
                                       const struct tarn_checkpoint *checkpoint,
                                       struct tarn_checkpoint_delta *delta_out,
                                       struct tarn_error *error);
    enum tarn_status (*check_pool_live)(struct tarn_allocator *allocator, struct tarn_pool_id id,
                                        const tarn_ptr *expected, size_t count, bool *live_out,
                                        struct tarn_error *error);
};

#endif
