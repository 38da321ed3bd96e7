/* SPDX-License-Identifier: MIT */
/*
 * Pages of 2 MiB that are mapped nowhere. Those in hand are on their way to the place of one
 * request. If that fails they are kept for later, with the stream whose next work comes after
 * everything that used them: that stream may have them at once, others when its work until then is
 * done, or after waiting for it. All count as reserved, in the large pool.
 *
 * Owns: its pages. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_COMPACT_PAGE_STORE_H
#define TN_ALLOC_COMPACT_PAGE_STORE_H

#include "alloc/compact/stream_order.h"
#include "alloc/config/size_class.h"
#include "alloc/pool/mapping.h"

struct tn_kept_page {
    tn_page_handle page;
    tarn_stream stream;
    int64_t epoch; /* of stream_order.h, in which it was kept */
};

struct tn_page_store {
    struct tn_heap *heap;
    struct tn_new_pages hand;
    struct tn_vec kept; /* struct tn_kept_page */
};

void tn_page_store_init(struct tn_page_store *store, struct tn_heap *heap);

/* Bytes of all pages. */
uint64_t tn_page_store_bytes(const struct tn_page_store *store);

/* Makes room for `more` pages in hand, and to keep them. */
bool tn_page_store_reserve(struct tn_page_store *store, uint64_t more) TN_MUST_CHECK;

/* Takes a page in hand that is not reserved by anything else; there must be room. */
void tn_page_store_put(struct tn_page_store *store, tn_page_handle page);

/* The same with a new page from the device, if the limit allows it. TARN_ERR_OUT_OF_MEMORY when
 * there is none. */
enum tarn_status tn_page_store_create(struct tn_page_store *store,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Looks how far the streams of kept pages have come. Not while requests are routed to private
 * pools. */
void tn_page_store_poll(const struct tn_page_store *store, struct tn_stream_order *order);

/* Takes up to `wanted` kept pages in hand that the stream may have without waiting, and returns how
 * many. Room is not needed. */
uint64_t tn_page_store_take(struct tn_page_store *store, const struct tn_stream_order *order,
                            tarn_stream stream, uint64_t wanted);

/* The same with any, while none of them is mapped at an old address. */
uint64_t tn_page_store_take_any(struct tn_page_store *store, uint64_t wanted);

/* The same with pages for which the stream waits. Not while requests are routed to private
 * pools. */
enum tarn_status tn_page_store_take_ordered(struct tn_page_store *store,
                                            struct tn_stream_order *order, tarn_stream stream,
                                            uint64_t *wanted,
                                            struct tarn_error *error) TN_MUST_CHECK;

/* Keeps what is in hand. */
void tn_page_store_keep(struct tn_page_store *store, const struct tn_stream_order *order,
                        tarn_stream stream);

/* Counts the last `count` pages in hand as taken out, or as put back: for tn_mapping_add, which
 * takes from `hand` and counts what it maps. */
void tn_page_store_lend(struct tn_page_store *store, uint64_t count);
void tn_page_store_return(struct tn_page_store *store, uint64_t count);

/* Gives those in hand back to the device. They are mapped nowhere. */
void tn_page_store_release_hand(struct tn_page_store *store);

/* Gives all pages back to the device. */
void tn_page_store_release(struct tn_page_store *store);

#endif
