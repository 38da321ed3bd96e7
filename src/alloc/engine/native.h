/* SPDX-License-Identifier: MIT */
/* The caching engine's algorithm: allocating and freeing, as PyTorch does both. */
#ifndef TN_ALLOC_ENGINE_NATIVE_H
#define TN_ALLOC_ENGINE_NATIVE_H

#include "alloc/engine/engine.h"

struct tn_request;

/* These take the engine's lock themselves. */
enum tarn_status tn_native_alloc(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                 tarn_ptr *ptr_out, struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_alloc_at(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                    tarn_ptr address, struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_free(struct tn_engine *engine, tarn_ptr ptr,
                                struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_record_stream(struct tn_engine *engine, tarn_ptr ptr, tarn_stream stream,
                                         struct tarn_error *error) TN_MUST_CHECK;

/* Completes the frees whose other streams are done, as every allocation does first; under the
 * lock. Only the request's stream and stack are read. */
enum tarn_status tn_native_complete_frees(struct tn_engine *engine,
                                          const struct tn_request *request,
                                          struct tarn_error *error) TN_MUST_CHECK;

/* Routes the request to the pool that serves its stream, which must be awake, and prepares it;
 * under the lock. */
enum tarn_status tn_native_route(struct tn_heap *heap, struct tn_request *request,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* Frees an allocated block; under the lock. On failure it is still allocated. */
enum tarn_status tn_native_free_locked(struct tn_engine *engine, struct tn_block *block,
                                       uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* The same, but cannot fail: a block whose events cannot be recorded is deferred. The caller has
 * made room with tn_stream_waits_reserve_deferred. */
void tn_native_free_surely(struct tn_engine *engine, struct tn_block *block, uint64_t stack);

#endif
