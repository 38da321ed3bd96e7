/* SPDX-License-Identifier: MIT */
/*
 * Expandable segments (PyTorch's expandable segments): a reserved address range of 9/8 of the
 * device's memory, into which pages of 2 MiB (small pool) or 20 MiB (large pool) are mapped as
 * needed and from which free pages are unmapped. One range per pool and stream, more when its
 * addresses are used up.
 *
 * Parts of the range that are not mapped are blocks too (mapped = false), kept in their free set's
 * unmapped ranges, ordered by address.
 *
 * An allocation first creates every page that it will need and only then maps them piece by piece,
 * as PyTorch does: when the device has no room, nothing has changed.
 *
 * Owns: ranges and pages. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_POOL_EXPANDABLE_H
#define TN_ALLOC_POOL_EXPANDABLE_H

#include "alloc/pool/core.h"
#include "base/attr.h"
#include "device/device_ops.h"

struct tn_heap;
struct tn_private_pool;

/* Pages of one expandable segment. */
struct tn_expandable {
    uint64_t page_size;
    tn_page_handle *pages; /* by index from the segment's address, 0 = not mapped */
    uint64_t page_count;   /* room in `pages`: indices from here on were never mapped */
    int *descriptors;      /* of pages shared with other processes, by index, -1 = none; kept until
                              the page is unmapped, because processes may fetch them late */
    uint64_t descriptor_count;
};

/* Finds room for `size` bytes (rounded request) among the free and unmapped parts of the set's
 * expandable segments, maps what is missing and gives one block of at least `size` bytes that is
 * in no set. TARN_ERR_OUT_OF_MEMORY when the device has no room. On failure nothing changed, except
 * that a new empty range may have been reserved. */
enum tarn_status tn_expandable_alloc(struct tn_heap *heap, struct tn_free_set *set, uint64_t size,
                                     uint64_t stack, struct tn_block **block_out,
                                     struct tarn_error *error) TN_MUST_CHECK;

/* Gives back the whole pages inside a free block, and the range once nothing in it is mapped. The
 * block is in its free set. */
enum tarn_status tn_expandable_unmap(struct tn_heap *heap, struct tn_block *block, uint64_t stack,
                                     struct tarn_error *error) TN_MUST_CHECK;

/* Gives back the private pool's ranges in which nothing is mapped: failed allocations leave them
 * behind. */
enum tarn_status tn_expandable_drop_empty(struct tn_heap *heap, const struct tn_private_pool *owner,
                                          struct tarn_error *error) TN_MUST_CHECK;

/* Gives a peer device access to everything that is mapped. */
enum tarn_status tn_expandable_grant(struct tn_heap *heap, const struct tn_segment *segment,
                                     int peer_ordinal, struct tarn_error *error) TN_MUST_CHECK;

/* Descriptors of the pages [begin, end), which are mapped; borrowed while the lock is held. */
enum tarn_status tn_expandable_export(struct tn_heap *heap, const struct tn_segment *segment,
                                      uint64_t begin, uint64_t end, const int **descriptors_out,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Unmaps everything and frees the segment's records, without counters or events: the end of the
 * engine. */
void tn_expandable_destroy(struct tn_heap *heap, struct tn_segment *segment);

#endif
