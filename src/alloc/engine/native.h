/* SPDX-License-Identifier: MIT */
/* The caching engine's algorithm: allocating and freeing, as PyTorch does both. */
#ifndef TN_ALLOC_ENGINE_NATIVE_H
#define TN_ALLOC_ENGINE_NATIVE_H

#include "alloc/engine/engine.h"

struct tn_request;

/* These take the engine's lock themselves. */
enum tarn_status tn_native_alloc(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                 tarn_ptr *ptr_out, struct tarn_error *error) TN_MUST_CHECK;
/* From a private pool that somebody keeps alive, wherever the stream is routed. */
enum tarn_status tn_native_alloc_in(struct tn_engine *engine, struct tn_private_pool *owner,
                                    uint64_t size, tarn_stream stream, tarn_ptr *ptr_out,
                                    struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_alloc_at(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                    tarn_ptr address, struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_free(struct tn_engine *engine, tarn_ptr ptr,
                                struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_record_stream(struct tn_engine *engine, tarn_ptr ptr, tarn_stream stream,
                                         struct tarn_error *error) TN_MUST_CHECK;

/* The first steps of an allocation, under the lock: completes frees, rounds, finds the pool (of
 * `owner`; NULL: where the stream is routed) and reserves what follows. */
enum tarn_status tn_native_begin(struct tn_engine *engine, struct tn_request *request,
                                 struct tn_private_pool *owner,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* No free block fits: climbs the ladder for one, under the lock. */
enum tarn_status tn_native_find_by_ladder(struct tn_engine *engine, struct tn_request *request,
                                          struct tarn_error *error) TN_MUST_CHECK;

/* Memory has run out: counts that, releases the lock, writes the message and calls observers.
 * Returns TARN_ERR_OUT_OF_MEMORY. */
enum tarn_status tn_native_run_out(struct tn_engine *engine, const struct tn_request *request,
                                   struct tarn_error *error);

/* Allocates from the block of the request, which is in no set, at `address` inside it; what is in
 * front becomes free again. There must be room for two in the map and two spare nodes. */
void tn_native_take_at(struct tn_engine *engine, struct tn_request *request, uint64_t address);

/* Frees an allocated block; under the lock. On failure it is still allocated. */
enum tarn_status tn_native_free_locked(struct tn_engine *engine, struct tn_block *block,
                                       uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* The same, but cannot fail: a block whose events cannot be recorded is deferred. The caller has
 * made room with tn_stream_waits_reserve_deferred. */
void tn_native_free_surely(struct tn_engine *engine, struct tn_block *block, uint64_t stack);

#endif
