/* SPDX-License-Identifier: MIT */
#include "base/chunked_vec.h"

#include <string.h>

void tn_chunked_vec_init(struct tn_chunked_vec *store, struct tn_budget *budget, size_t item_size)
{
    *store = (struct tn_chunked_vec){.budget = budget, .item_size = item_size};
}

void tn_chunked_vec_fini(struct tn_chunked_vec *store)
{
    for (size_t i = 0; i < store->chunk_count; i++) {
        tn_budget_free(store->budget, store->chunks[i], store->item_size * TN_STORE_CHUNK);
    }
    tn_budget_free(store->budget, store->chunks, store->chunk_capacity * sizeof *store->chunks);
    tn_chunked_vec_init(store, store->budget, store->item_size);
}

static bool store_grow_list(struct tn_chunked_vec *store)
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

bool tn_chunked_vec_grow(struct tn_chunked_vec *store)
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
