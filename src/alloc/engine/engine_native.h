/* SPDX-License-Identifier: MIT */
/*
 * The caching engine: policy. Each function takes the engine's lock itself.
 */
#ifndef TN_ALLOC_ENGINE_ENGINE_NATIVE_H
#define TN_ALLOC_ENGINE_ENGINE_NATIVE_H

#include "alloc/engine/engine.h"
#include "tarn/allocator.h"

void tn_native_init(struct tn_engine *engine, struct tarn_device *device,
                    const struct tarn_config *config);

/* Gives everything back to the device. */
void tn_native_fini(struct tn_engine *engine);

enum tarn_status tn_native_alloc(struct tn_engine *engine, uint64_t size, tarn_stream stream,
                                 struct tarn_handle *handle_out,
                                 struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_free(struct tn_engine *engine, struct tarn_handle handle,
                                struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_record_stream(struct tn_engine *engine, tarn_ptr ptr, tarn_stream stream,
                                         struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_empty_cache(struct tn_engine *engine, struct tarn_pool_id id,
                                       struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_base_allocation(struct tn_engine *engine, tarn_ptr ptr,
                                           tarn_ptr *base_out, uint64_t *size_out,
                                           struct tarn_error *error) TN_MUST_CHECK;
enum tarn_status tn_native_set_fraction(struct tn_engine *engine, double fraction,
                                        struct tarn_error *error) TN_MUST_CHECK;

enum tarn_status tn_native_cache_info(struct tn_engine *engine, uint64_t *largest,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* What handing out did: where the pointer map has the block, and the counters of free parts. */
struct tn_handed_out {
    uint64_t place;
    struct tn_split_change change;
};

/* Hands out `size` bytes of a block that is in no set, as PyTorch's alloc_found_block: splits,
 * counts, sends the event. A node must have been put by if `split`, and room in the pointer map.
 * The block takes over the caller's reference to `stack`. Under the lock; also what restoring a
 * checkpoint does. */
struct tn_handed_out tn_native_hand_out(struct tn_engine *engine, struct tn_block *block,
                                        uint64_t size, uint64_t requested, bool split,
                                        uint64_t stack);

/* Frees an allocated block; under the lock. On failure it is still allocated. */
enum tarn_status tn_native_free_locked(struct tn_engine *engine, struct tn_block *block,
                                       uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* The same without failing: a block whose events cannot be recorded is deferred, for which room was
 * made by tn_stream_waits_reserve_deferred. */
void tn_native_free_surely(struct tn_engine *engine, struct tn_block *block, uint64_t stack);

#endif
