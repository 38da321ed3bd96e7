/* SPDX-License-Identifier: MIT */
#include "base/store.h"

#include <string.h>

void tn_store_init(struct tn_store *store, struct tn_budget *budget, size_t item_size)
{
    *store = (struct tn_store){.budget = budget, .item_size = item_size};
}

void tn_store_fini(struct tn_store *store)
{
    for (size_t i = 0; i < store->chunk_count; i++) {
        tn_budget_free(store->budget, store->chunks[i], store->item_size * TN_STORE_CHUNK);
    }
    tn_budget_free(store->budget, store->chunks, store->chunk_capacity * sizeof *store->chunks);
    tn_store_init(store, store->budget, store->item_size);
}

static bool store_grow_list(struct tn_store *store)
{
    const size_t capacity = store->chunk_capacity == 0 ? 8 : store->chunk_capacity * 2;
    char **chunks = tn_budget_alloc(store->budget, capacity * sizeof *chunks);

    if (!chunks) {
        return false;
    }
    if (store->chunks) {
        memcpy(chunks, store->chunks, store->chunk_count * sizeof *chunks);
    }
    tn_budget_free(store->budget, store->chunks, store->chunk_capacity * sizeof *chunks);
    store->chunks = chunks;
    store->chunk_capacity = capacity;
    return true;
}

bool tn_store_grow(struct tn_store *store)
{
    if (store->chunk_count == store->chunk_capacity && !store_grow_list(store)) {
        return false;
    }
    char *chunk = tn_budget_alloc(store->budget, store->item_size * TN_STORE_CHUNK);
    if (!chunk) {
        return false;
    }
    store->chunks[store->chunk_count++] = chunk;
    return true;
}
