/* SPDX-License-Identifier: MIT */
/*
 * Getting segments from the device and giving them back, with their counters and events. Growing
 * segments are in expandable.h; the tree of all segments is kept here.
 */
#ifndef TN_ALLOC_POOL_SEGMENT_H
#define TN_ALLOC_POOL_SEGMENT_H

#include "alloc/pool/core.h"
#include "base/attr.h"
#include "tarn/status.h"

struct tn_engine;

void tn_segments_init(struct tn_tree *segments);

/* Takes `size` bytes from the device and makes them one block, in no set, of `set`'s pool and
 * stream. Drops the engine's lock during the device call if the settings say so.
 * TARN_ERR_OUT_OF_MEMORY when the device has no room; on any failure nothing changed. */
enum tarn_status tn_segment_alloc(struct tn_engine *engine, struct tn_free_set *set, uint64_t size,
                                  uint64_t stack, struct tn_block **block_out,
                                  struct tarn_error *error) TN_MUST_CHECK;

/* Gives an idle block that is a whole plain segment back to the device. The block is in its free
 * set; on success its node is gone, on failure it is still there. `stack` 0: the segment's own. */
enum tarn_status tn_segment_release(struct tn_engine *engine, struct tn_block *block,
                                    uint64_t stack, struct tarn_error *error) TN_MUST_CHECK;

/* Segment that holds the address; NULL if none does. */
struct tn_segment *tn_segment_find(const struct tn_engine *engine, uint64_t address);

/* In address order; NULL at the end. */
struct tn_segment *tn_segment_first(const struct tn_engine *engine);
struct tn_segment *tn_segment_next(const struct tn_segment *segment);

#endif
