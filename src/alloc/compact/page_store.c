/* SPDX-License-Identifier: MIT */
#include "alloc/compact/page_store.h"

#include "base/host_mem.h"

bool tn_page_store_reserve(struct tn_page_store *store, uint64_t more)
{
    struct tn_new_pages *pages = &store->pages;
    const uint64_t needed = pages->count + more;

    if (needed <= pages->capacity) {
        return true;
    }
    const uint64_t wanted = needed > pages->capacity * 2 ? needed : pages->capacity * 2;
    tn_page_handle *moved =
        tn_host_resize(pages->pages, pages->capacity * sizeof *moved, wanted * sizeof *moved);

    if (!moved) {
        return false;
    }
    pages->pages = moved;
    pages->capacity = wanted;
    return true;
}

void tn_page_store_return(struct tn_heap *heap, uint64_t count)
{
    heap->reserved += count * TN_SMALL_BUFFER;
    tn_counter_increase(&heap->shard.counters.reserved, tn_counter_pool(false),
                        count * TN_SMALL_BUFFER);
}

void tn_page_store_lend(struct tn_heap *heap, uint64_t count)
{
    heap->reserved -= count * TN_SMALL_BUFFER;
    tn_counter_decrease(&heap->shard.counters.reserved, tn_counter_pool(false),
                        count * TN_SMALL_BUFFER);
}

void tn_page_store_put(struct tn_page_store *store, struct tn_heap *heap, tn_page_handle page)
{
    tn_assert(store->pages.count < store->pages.capacity);
    store->pages.pages[store->pages.count++] = page;
    tn_page_store_return(heap, 1);
}

enum tarn_status tn_page_store_create(struct tn_page_store *store, struct tn_heap *heap,
                                      struct tarn_error *error)
{
    tn_page_handle page;

    if (tn_heap_limit_is_set(heap) && heap->reserved + TN_SMALL_BUFFER > heap->limit) {
        return TARN_ERR_OUT_OF_MEMORY;
    }
    const enum tarn_status st =
        heap->device->ops->page_create(heap->device, TN_SMALL_BUFFER, &page);

    if (st) {
        return tn_heap_device_failed(heap, st, "creating memory pages", error);
    }
    tn_page_store_put(store, heap, page);
    return TARN_OK;
}

void tn_page_store_release(struct tn_page_store *store, struct tn_heap *heap)
{
    tn_page_store_lend(heap, store->pages.count);
    tn_new_pages_release(heap, &store->pages);
}
