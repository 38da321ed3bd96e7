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
 * Here are ranges and single pages; mapping.h has blocks whose pages come and go, growth.h where
 * PyTorch lets a range grow.
 *
 * Owns: ranges and pages. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_POOL_EXPANDABLE_H
#define TN_ALLOC_POOL_EXPANDABLE_H

#include "alloc/pool/core.h"
#include "base/assertion.h"
#include "base/attr.h"
#include "device/device_ops.h"

struct tn_heap;

/* Pages of one expandable segment. */
struct tn_expandable {
    uint64_t page_size;
    tn_page_handle *pages; /* by index from the segment's address, 0 = not mapped */
    uint64_t page_count;   /* room in `pages`: indices from here on were never mapped */
    uint32_t *times;       /* by index: how often a page was mapped there */
    uint64_t times_count;  /* room in `times`, no less than in `pages` */
    int *descriptors;      /* of pages shared with other processes, by index, -1 = none; kept until
                              the page is unmapped, because processes may fetch them late */
    uint64_t descriptor_count;
    uint64_t retiring; /* pages that are gone from `pages` and still mapped (compact/retired.h) */
};

/* Pages that so many bytes need. */
static inline uint64_t tn_pages_up(uint64_t bytes, uint64_t page_size)
{
    tn_assert(page_size > 0 && bytes <= UINT64_MAX - page_size);
    return (bytes + page_size - 1) / page_size;
}

/* Bytes of a new range of that set: 9/8 of the device's memory, so that some of it can be mapped
 * further up while unmapped holes lie below. */
uint64_t tn_expandable_range_size(const struct tn_heap *heap, const struct tn_free_set *set);

/* A new range: one unmapped block, in the set's unmapped ranges. */
enum tarn_status tn_expandable_create(struct tn_heap *heap, struct tn_free_set *set,
                                      struct tn_block **block_out,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Gives back a range in which nothing is mapped; `block` is all of it, in the unmapped ranges. */
enum tarn_status tn_expandable_drop(struct tn_heap *heap, struct tn_segment *segment,
                                    struct tn_block *block, struct tarn_error *error) TN_MUST_CHECK;

/* Makes room for pages with indices below `end`; false without host memory. */
bool tn_expandable_reserve(struct tn_expandable *expandable, uint64_t end) TN_MUST_CHECK;

/* Maps a page at an index below the room made and gives the peers access. On failure nothing
 * changed. */
enum tarn_status tn_page_map(struct tn_heap *heap, const struct tn_segment *segment, uint64_t index,
                             tn_page_handle page) TN_MUST_CHECK;

/* Unmaps the page with that index; its handle goes to `page_out`. */
enum tarn_status tn_page_unmap(struct tn_heap *heap, const struct tn_segment *segment,
                               uint64_t index, tn_page_handle *page_out) TN_MUST_CHECK;

/* Whether other processes were given the page. */
static inline bool tn_page_is_shared(const struct tn_expandable *expandable, uint64_t index)
{
    return index < expandable->descriptor_count && expandable->descriptors[index] >= 0;
}

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
