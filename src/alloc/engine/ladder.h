/* SPDX-License-Identifier: MIT */
/* The fallbacks for a request that no free block fits. */
#ifndef TN_ALLOC_ENGINE_LADDER_H
#define TN_ALLOC_ENGINE_LADDER_H

#include "alloc/engine/engine.h"
#include "alloc/pool/best_fit.h"

/* Tries the fallbacks in order until one gives request->block; the request may then be one of
 * another pool (borrowing). TARN_ERR_NOT_FOUND and TARN_ERR_OUT_OF_MEMORY mean that memory has run
 * out. May drop the lock for a while, and use up what tn_request_prepare reserved. */
enum tarn_status tn_ladder_climb(struct tn_engine *engine, struct tn_request *request,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* Reserves again what was used up meanwhile. On failure the block found, if any, is free again. */
enum tarn_status tn_ladder_prepare(struct tn_engine *engine, struct tn_request *request,
                                   struct tarn_error *error) TN_MUST_CHECK;

/* Asks the device, or under the compact policy for pages, within the limits; `soft`: within the
 * soft limit as well. Nothing else. TARN_ERR_NOT_FOUND when that is not possible. As above, a
 * request that it serves has to be prepared again. */
enum tarn_status tn_ladder_grow(struct tn_engine *engine, struct tn_request *request, bool soft,
                                struct tarn_error *error) TN_MUST_CHECK;

/* Whether a limit, not the device, may be why it did not grow. */
bool tn_ladder_is_limited(const struct tn_engine *engine, const struct tn_request *request,
                          bool soft);

/* Takes a segment of `size` bytes from the device for the set: one block in no set. Drops the lock
 * during the device call if the settings say so. On failure nothing changed. */
enum tarn_status tn_ladder_take_segment(struct tn_engine *engine, struct tn_free_set *set,
                                        uint64_t size, uint64_t stack, struct tn_block **block_out,
                                        struct tarn_error *error) TN_MUST_CHECK;

#endif
