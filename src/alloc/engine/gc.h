/* SPDX-License-Identifier: MIT */
/*
 * Giving cached memory back to the device: by age when a limit is near (garbage collection), a few
 * large blocks for one request, or everything. Orders are PyTorch's, because they show in the
 * decisions. Guarded by the engine's lock.
 */
#ifndef TN_ALLOC_ENGINE_GC_H
#define TN_ALLOC_ENGINE_GC_H

#include "alloc/pool/core.h"
#include "base/attr.h"
#include "tarn/graph_pool.h"
#include "tarn/status.h"

struct tn_engine;

/* Above threshold x limit: releases unsplit blocks of the large default pool that were free for
 * longer than the average, in passes, until enough went back or nothing is old enough. */
enum tarn_status tn_gc_collect(struct tn_engine *engine, uint64_t stack,
                               struct tarn_error *error) TN_MUST_CHECK;

/* With max_split_size set: releases one free block that could serve the request but may not, or
 * else the largest blocks until their sum would. *released_out says whether that sum was reached.
 * */
enum tarn_status tn_gc_release_oversize(struct tn_engine *engine, struct tn_free_set *set,
                                        uint64_t size, uint64_t stack, bool *released_out,
                                        struct tarn_error *error) TN_MUST_CHECK;

/* Waits for pending frees and releases every unsplit free block and every free page: of the default
 * pools (unless requests are routed to a private pool just now) and of the private pools that
 * nobody uses. With a pool id other than {0, 0}, of that pool alone. */
enum tarn_status tn_gc_release_cached(struct tn_engine *engine, struct tarn_pool_id id,
                                      uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

#endif
