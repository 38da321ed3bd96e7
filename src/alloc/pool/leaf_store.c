/* SPDX-License-Identifier: MIT */
#include "alloc/pool/leaf_store.h"

#include "base/assertion.h"
#include "base/host_mem.h"

#include <stdbool.h>

struct tn_leaf_batch {
    struct tn_leaf_batch *next;
    _Alignas(TN_CACHE_LINE) unsigned char pieces[TN_LEAF_STORE_BATCH][TN_LEAF_STORE_PIECE];
};

static void store_add_spare(struct tn_leaf_store *store, void *piece)
{
    *(void **)piece = store->spare;
    store->spare = piece;
}

static bool store_grow(struct tn_leaf_store *store)
{
    struct tn_leaf_batch *batch = tn_host_alloc_aligned(sizeof *batch, TN_CACHE_LINE);

    if (!batch) {
        return false;
    }
    batch->next = store->batches;
    store->batches = batch;
    store->batch_count++;
    for (unsigned i = TN_LEAF_STORE_BATCH; i > 0; i--) {
        store_add_spare(store, batch->pieces[i - 1]);
    }
    return true;
}

void *tn_leaf_store_take(struct tn_leaf_store *store)
{
    if (!store->spare && !store_grow(store)) {
        return NULL;
    }
    void *piece = store->spare;

    store->spare = *(void **)piece;
    store->used++;
    return piece;
}

void tn_leaf_store_give(struct tn_leaf_store *store, void *piece)
{
    tn_assert(store->used > 0);
    store_add_spare(store, piece);
    store->used--;
}

void tn_leaf_store_trim(struct tn_leaf_store *store)
{
    if (store->used > 0) {
        return;
    }
    while (store->batches) {
        struct tn_leaf_batch *batch = store->batches;

        store->batches = batch->next;
        tn_host_free(batch, sizeof *batch);
    }
    *store = (struct tn_leaf_store){0};
}

size_t tn_leaf_store_memory(const struct tn_leaf_store *store)
{
    return store->batch_count * sizeof(struct tn_leaf_batch);
}
