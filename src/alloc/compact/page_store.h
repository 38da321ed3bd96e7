/* SPDX-License-Identifier: MIT */
/*
 * Pages of 2 MiB that are mapped nowhere: between two places, or left over when an allocation
 * failed. They count as reserved, in the large pool.
 *
 * Owns: its pages. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_COMPACT_PAGE_STORE_H
#define TN_ALLOC_COMPACT_PAGE_STORE_H

#include "alloc/config/size_class.h"
#include "alloc/pool/heap.h"
#include "alloc/pool/mapping.h"

/* All zero is empty. */
struct tn_page_store {
    struct tn_new_pages pages;
};

static inline uint64_t tn_page_store_bytes(const struct tn_page_store *store)
{
    return store->pages.count * TN_SMALL_BUFFER;
}

/* Makes room for `more` pages. */
bool tn_page_store_reserve(struct tn_page_store *store, uint64_t more) TN_MUST_CHECK;

/* Adds a page that is not reserved by anything else; there must be room. */
void tn_page_store_put(struct tn_page_store *store, struct tn_heap *heap, tn_page_handle page);

/* Counts the last `count` pages as taken out, or as put back: for tn_mapping_add, which takes from
 * `pages` and counts what it maps. */
void tn_page_store_lend(struct tn_heap *heap, uint64_t count);
void tn_page_store_return(struct tn_heap *heap, uint64_t count);

/* Gets a new page from the device, if the limit allows it. TARN_ERR_OUT_OF_MEMORY when there is
 * none; there must be room. */
enum tarn_status tn_page_store_create(struct tn_page_store *store, struct tn_heap *heap,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Gives all pages back to the device. */
void tn_page_store_release(struct tn_page_store *store, struct tn_heap *heap);

#endif
