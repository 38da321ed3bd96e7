/* SPDX-License-Identifier: MIT */
/* Where an expandable segment grows and what it gives back: PyTorch's decisions. Guarded by the
 * heap's lock. */
#ifndef TN_ALLOC_POOL_GROWTH_H
#define TN_ALLOC_POOL_GROWTH_H

#include "alloc/pool/core.h"
#include "base/attr.h"
#include "tarn/status.h"

struct tn_heap;

/* Finds room for `size` bytes (rounded request) among the free and unmapped parts of the set's
 * expandable segments, maps what is missing and gives one block of at least `size` bytes that is
 * in no set. TARN_ERR_OUT_OF_MEMORY when the device has no room. On failure nothing changed, except
 * that a new empty range may have been reserved. */
enum tarn_status tn_expandable_alloc(struct tn_heap *heap, struct tn_free_set *set, uint64_t size,
                                     uint64_t stack, struct tn_block **block_out,
                                     struct tarn_error *error) TN_MUST_CHECK;

/* Gives back the whole pages inside a free block, the last ones if those are more than `bytes`
 * need, and the range once nothing in it is mapped. The block is in its free set. */
enum tarn_status tn_expandable_unmap(struct tn_heap *heap, struct tn_block *block, uint64_t bytes,
                                     uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* Gives back the private pool's ranges in which nothing is mapped: failed allocations leave them
 * behind. */
enum tarn_status tn_expandable_drop_empty(struct tn_heap *heap, const struct tn_private_pool *owner,
                                          struct tarn_error *error) TN_MUST_CHECK;

#endif
