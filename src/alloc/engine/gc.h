/* SPDX-License-Identifier: MIT */
/*
 * Giving cached memory back to the device: by age when a limit is near (garbage collection), a few
 * large blocks for one request, or everything, in PyTorch's orders, because later decisions depend
 * on them; and as much as somebody asks for. Guarded by the engine's lock.
 */
#ifndef TN_ALLOC_ENGINE_GC_H
#define TN_ALLOC_ENGINE_GC_H

#include "alloc/pool/core.h"
#include "alloc/pool/private_pool.h"
#include "base/attr.h"
#include "tarn/graph_pool.h"
#include "tarn/status.h"

struct tn_engine;

/* If more than threshold x limit is reserved: releases unsplit blocks of the large default pool
 * that have been free for at least the average number of searches, in passes, until enough is
 * released or nothing is old enough. */
enum tarn_status tn_gc_collect(struct tn_engine *engine, uint64_t stack,
                               struct tarn_error *error) TN_MUST_CHECK;

/* With max_split_size set: releases one free block that is large enough but may not serve the
 * request (tn_fit_is_allowed), or else the largest oversize blocks until their sum is large enough.
 * *released_out: whether it is. */
enum tarn_status tn_gc_release_oversize(struct tn_engine *engine, struct tn_free_set *set,
                                        uint64_t size, uint64_t stack, bool *released_out,
                                        struct tarn_error *error) TN_MUST_CHECK;

/* Waits for pending frees and releases every unsplit free block and every free page: of the default
 * pools (unless requests are being routed to a private pool) and of the private pools that nobody
 * uses. With a pool id other than {0, 0}, of that pool alone. */
enum tarn_status tn_gc_release_cached(struct tn_engine *engine, struct tarn_pool_id id,
                                      uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* The same of all, for a request of that priority: of the default pools, whose priority is 0, and
 * of open pools that come before them. */
enum tarn_status tn_gc_release_cached_for(struct tn_engine *engine, int64_t priority,
                                          uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* The lowest priority of an open pool above that; false when there is none. */
bool tn_gc_next_priority(const struct tn_engine *engine, int64_t *priority_in_out);

/* Releases what the open pools of that priority have cached. No graph is captured. */
enum tarn_status tn_gc_release_priority(struct tn_engine *engine, int64_t priority, uint64_t stack,
                                        bool *released_out, struct tarn_error *error) TN_MUST_CHECK;

/* Under the compact policy: releases free pages that other processes were given, which do not move,
 * of the pools up to that priority, until `bytes` are released or there are no more. Other free
 * pages in a block with such ones go as well. Waits for the streams that had them. No graph is
 * captured. */
enum tarn_status tn_gc_release_shared(struct tn_engine *engine, int64_t priority, uint64_t bytes,
                                      uint64_t stack, bool *released_out,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* As tn_gc_trim, one pool's memory to a target of its own. */
enum tarn_status tn_gc_trim_pool(struct tn_engine *engine, struct tn_private_pool *pool,
                                 uint64_t target, uint64_t stack,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* Waits for pending frees and releases what is free on one stream, of all pools but graphs'.
 * Nothing while a graph may be captured. */
enum tarn_status tn_gc_release_stream(struct tn_engine *engine, tarn_stream stream, uint64_t stack,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Releases free blocks of the default pools, the largest first, and pages of expandable segments as
 * needed, until no more than `target` bytes are reserved; then waits for pending frees; then
 * releases private pools that nobody uses and free blocks of open ones. Nothing while a graph may
 * be captured. */
enum tarn_status tn_gc_trim(struct tn_engine *engine, uint64_t target, uint64_t stack,
                            struct tarn_error *error) TN_MUST_CHECK;

#endif
