/* SPDX-License-Identifier: MIT */
/*
 * Getting segments from the device and giving them back, with their counters and events. Expandable
 * segments are in expandable.h, the map of all segments in segment_map.h.
 */
#ifndef TN_ALLOC_POOL_SEGMENT_H
#define TN_ALLOC_POOL_SEGMENT_H

#include "alloc/pool/core.h"
#include "base/attr.h"
#include "tarn/status.h"

struct tn_heap;

/* Host memory for a segment that the device is about to be asked for. */
struct tn_new_segment {
    struct tn_segment *segment;
    struct tn_block *block;
};

/* Taking a segment from the device: prepare, ask it, then add or discard. Only prepare can fail.
 * Add makes the `size` bytes at `address` one block, in no set, of `set`'s pool and stream. The
 * lock may be dropped between the calls. */
enum tarn_status tn_segment_prepare(struct tn_heap *heap, struct tn_new_segment *fresh,
                                    struct tarn_error *error) TN_MUST_CHECK;
struct tn_block *tn_segment_add(struct tn_heap *heap, const struct tn_new_segment *fresh,
                                struct tn_free_set *set, uint64_t address, uint64_t size,
                                uint64_t stack);
void tn_segment_discard(struct tn_heap *heap, struct tn_new_segment *fresh);

/* Gives the memory of a plain segment of that pool back to where it came from. */
enum tarn_status tn_segment_give_back(struct tn_heap *heap, const struct tn_pool *pool,
                                      uint64_t address) TN_MUST_CHECK;

/* Gives an idle block that is a whole plain segment back to the device. The block is in its free
 * set; on success its node is gone, on failure it is still there. `stack` 0: the segment's own. */
enum tarn_status tn_segment_release(struct tn_heap *heap, struct tn_block *block, uint64_t stack,
                                    struct tarn_error *error) TN_MUST_CHECK;

/* Segment that holds the address; NULL if none does. */
struct tn_segment *tn_segment_find(const struct tn_heap *heap, uint64_t address);

/* In address order; NULL at the end. */
struct tn_segment *tn_segment_first(const struct tn_heap *heap);
struct tn_segment *tn_segment_next(const struct tn_segment *segment);

#endif
