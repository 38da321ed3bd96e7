/* SPDX-License-Identifier: MIT */
/*
 * Blocks of expandable segments whose pages come and go: what an allocation lacks is mapped, and a
 * part of a free block becomes unmapped. Which pages these are, and where, is decided elsewhere
 * (growth.h, compact/).
 *
 * All pages that an allocation needs are there before the first is mapped, as in PyTorch: when the
 * device has no room, nothing has changed. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_POOL_MAPPING_H
#define TN_ALLOC_POOL_MAPPING_H

#include "alloc/pool/expandable.h"
#include "tarn/event.h"

/* Pages that are not mapped. */
struct tn_new_pages {
    tn_page_handle *pages;
    uint64_t count;
    uint64_t capacity;
};

/* `count` new pages, or none. */
enum tarn_status tn_new_pages_create(struct tn_heap *heap, struct tn_new_pages *fresh,
                                     uint64_t count, uint64_t page_size,
                                     struct tarn_error *error) TN_MUST_CHECK;

/* Gives those that were not mapped back to the device. */
void tn_new_pages_release(struct tn_heap *heap, struct tn_new_pages *fresh);

/* Pages that `size` bytes from the idle block on lack, and the index behind the last of them, 0
 * without any. The neighbours that are needed are idle. */
uint64_t tn_mapping_missing(const struct tn_segment *segment, struct tn_block *block, uint64_t size,
                            uint64_t *end_out);

/* Maps what `block` lacks, taking the last of the pages, and makes it one free block of at least
 * `size` bytes, in its set. Two spare nodes, room for two unmapped ranges and for the pages'
 * indices must be there. On failure nothing changed, but pages that the device then refuses to
 * unmap are lost: they are in `fresh` no more, and go when something else is mapped there. */
enum tarn_status tn_mapping_add(struct tn_heap *heap, struct tn_segment *segment,
                                struct tn_block *block, uint64_t size, uint64_t stack,
                                struct tn_new_pages *fresh, struct tn_block **block_out,
                                struct tarn_error *error) TN_MUST_CHECK;

/* The event that the pages [begin, end) of the set are about to be unmapped, or are mapped after
 * all. Whoever registered the memory elsewhere needs the first before their addresses go. */
void tn_mapping_tell(struct tn_heap *heap, enum tarn_action action,
                     const struct tn_segment *segment, const struct tn_free_set *set,
                     uint64_t begin, uint64_t end, uint64_t stack);

/* The pages [begin, end) of a free block, which is in its set, count as unmapped from now on; what
 * is left before and behind them is free. Two spare nodes and room for one unmapped range must be
 * there. Returns the unmapped block. Sends no event. */
struct tn_block *tn_mapping_remove(struct tn_heap *heap, const struct tn_segment *segment,
                                   struct tn_block *block, uint64_t begin, uint64_t end);

/* The same without counting it: the pages went before (asleep.h). */
struct tn_block *tn_mapping_forget(struct tn_heap *heap, const struct tn_segment *segment,
                                   struct tn_block *block, uint64_t begin, uint64_t end);

#endif
