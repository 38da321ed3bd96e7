/* SPDX-License-Identifier: MIT */
#include "alloc/compact/page_store.h"

#include "base/host_mem.h"

void tn_page_store_init(struct tn_page_store *store, struct tn_heap *heap)
{
    *store = (struct tn_page_store){.heap = heap};
    tn_vec_init(&store->kept, sizeof(struct tn_kept_page));
}

uint64_t tn_page_store_bytes(const struct tn_page_store *store)
{
    return (store->hand.count + store->kept.count) * TN_SMALL_BUFFER;
}

static bool hand_reserve(struct tn_new_pages *hand, uint64_t more)
{
    const uint64_t needed = hand->count + more;

    if (needed <= hand->capacity) {
        return true;
    }
    const uint64_t wanted = needed > hand->capacity * 2 ? needed : hand->capacity * 2;
    tn_page_handle *moved =
        tn_host_resize(hand->pages, hand->capacity * sizeof *moved, wanted * sizeof *moved);

    if (!moved) {
        return false;
    }
    hand->pages = moved;
    hand->capacity = wanted;
    return true;
}

/* Kept pages always fit in hand, and those in hand can always be kept. */
bool tn_page_store_reserve(struct tn_page_store *store, uint64_t more)
{
    const uint64_t all = store->hand.count + store->kept.count + more;

    return hand_reserve(&store->hand, all - store->hand.count) &&
           tn_vec_reserve(&store->kept, (size_t)(all - store->kept.count));
}

void tn_page_store_return(struct tn_page_store *store, uint64_t count)
{
    tn_heap_count_reserved(store->heap, &store->heap->large, (int64_t)(count * TN_SMALL_BUFFER));
}

void tn_page_store_lend(struct tn_page_store *store, uint64_t count)
{
    tn_heap_count_reserved(store->heap, &store->heap->large, -(int64_t)(count * TN_SMALL_BUFFER));
}

void tn_page_store_put(struct tn_page_store *store, tn_page_handle page)
{
    tn_assert(store->hand.count < store->hand.capacity);
    store->hand.pages[store->hand.count++] = page;
    tn_page_store_return(store, 1);
}

enum tarn_status tn_page_store_create(struct tn_page_store *store, struct tarn_error *error)
{
    struct tn_heap *heap = store->heap;
    tn_page_handle page;

    if (tn_heap_limit_is_set(heap) && heap->reserved + TN_SMALL_BUFFER > heap->limit) {
        return TARN_ERR_OUT_OF_MEMORY;
    }
    const enum tarn_status st =
        heap->device->ops->page_create(heap->device, TN_SMALL_BUFFER, &page);

    if (st) {
        return tn_heap_device_failed(heap, st, "creating memory pages", error);
    }
    tn_page_store_put(store, page);
    return TARN_OK;
}

static void take_kept(struct tn_page_store *store, size_t index)
{
    struct tn_kept_page *kept = store->kept.items;

    store->hand.pages[store->hand.count++] = kept[index].page;
    kept[index] = kept[--store->kept.count];
}

void tn_page_store_poll(const struct tn_page_store *store, struct tn_stream_order *order)
{
    const struct tn_kept_page *kept = store->kept.items;

    for (size_t i = 0; i < store->kept.count; i++) { /* pages of a stream are adjacent, mostly */
        if (i == 0 || kept[i].stream != kept[i - 1].stream) {
            (void)tn_order_poll(order, kept[i].stream);
        }
    }
}

uint64_t tn_page_store_take(struct tn_page_store *store, const struct tn_stream_order *order,
                            tarn_stream stream, uint64_t wanted)
{
    const struct tn_kept_page *kept = store->kept.items;
    uint64_t taken = 0;

    for (size_t i = store->kept.count; i-- > 0 && taken < wanted;) {
        if (kept[i].stream == stream || kept[i].epoch <= tn_order_done(order, kept[i].stream)) {
            take_kept(store, i);
            taken++;
        }
    }
    return taken;
}

uint64_t tn_page_store_take_any(struct tn_page_store *store, uint64_t wanted)
{
    uint64_t taken = 0;

    while (store->kept.count > 0 && taken < wanted) {
        take_kept(store, store->kept.count - 1);
        taken++;
    }
    return taken;
}

enum tarn_status tn_page_store_take_ordered(struct tn_page_store *store,
                                            struct tn_stream_order *order, tarn_stream stream,
                                            uint64_t *wanted, struct tarn_error *error)
{
    const struct tn_kept_page *kept = store->kept.items;
    tarn_stream waited = stream; /* pages of a stream are adjacent, mostly: one wait for all */

    for (size_t i = store->kept.count; i-- > 0 && *wanted > 0;) {
        const enum tarn_status st = kept[i].stream == waited
                                        ? TARN_OK
                                        : tn_order_wait(order, stream, kept[i].stream, error);

        if (st) {
            return st;
        }
        waited = kept[i].stream;
        take_kept(store, i);
        --*wanted;
    }
    return TARN_OK;
}

void tn_page_store_keep(struct tn_page_store *store, const struct tn_stream_order *order,
                        tarn_stream stream)
{
    while (store->hand.count > 0) {
        const bool added = tn_vec_add(
            &store->kept, &(struct tn_kept_page){.page = store->hand.pages[--store->hand.count],
                                                 .stream = stream,
                                                 .epoch = order->epoch});

        tn_assert(added); /* there was room */
        (void)added;
    }
}

void tn_page_store_release_hand(struct tn_page_store *store)
{
    struct tn_heap *heap = store->heap;

    tn_page_store_lend(store, store->hand.count);
    while (store->hand.count > 0) { /* its room is also for those that are kept */
        (void)heap->device->ops->page_release(heap->device, store->hand.pages[--store->hand.count]);
    }
}

void tn_page_store_release(struct tn_page_store *store)
{
    struct tn_heap *heap = store->heap;
    const struct tn_kept_page *kept = store->kept.items;

    tn_page_store_lend(store, store->kept.count);
    for (size_t i = 0; i < store->kept.count; i++) {
        (void)heap->device->ops->page_release(heap->device, kept[i].page);
    }
    tn_vec_fini(&store->kept);
    tn_vec_init(&store->kept, sizeof(struct tn_kept_page));
    tn_page_store_release_hand(store);
    tn_new_pages_release(heap, &store->hand);
}
