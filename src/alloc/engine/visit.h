/* SPDX-License-Identifier: MIT */
/*
 * Walking segments and blocks in address order, so that snapshots, checks and statistics need not
 * reach into the structures. Each contiguous mapped range of an expandable segment is shown as a
 * segment, as in PyTorch's snapshots; ranges that are not mapped are left out. Under the engine's
 * lock.
 */
#ifndef TN_ALLOC_ENGINE_VISIT_H
#define TN_ALLOC_ENGINE_VISIT_H

#include "alloc/engine/engine.h"
#include "alloc/engine/page_info.h"
#include "tarn/allocator.h"

/* Shows every segment and block to the walker, or those of one pool; stops when it returns
 * false. */
void tn_visit(const struct tn_engine *engine, const struct tarn_walker *walker);
void tn_visit_pool(const struct tn_engine *engine, struct tarn_pool_id id,
                   const struct tarn_walker *walker);

/* As tarn_allocator_get_expandable_segments. */
size_t tn_visit_expandable(const struct tn_engine *engine, struct tarn_segment_info *segments_out,
                           size_t room);

/* Shows every page of the compact policy that is mapped, or those of one pool (`id` not NULL), in
 * address order; stops when the visitor returns false. */
void tn_visit_pages(const struct tn_engine *engine, const struct tarn_pool_id *id,
                    tn_page_visitor visitor, void *context);

/* Sends the event that PyTorch's snapshot leaves in the history: the sum of all active bytes. */
void tn_visit_mark_snapshot(struct tn_engine *engine);

#endif
