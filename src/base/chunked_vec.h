/* SPDX-License-Identifier: MIT */
/*
 * A growing array of items of one size, in chunks of 1024 items: items never move and growing
 * copies only the list of chunks. Item `i` is in chunk i / 1024. Cost of push and at: constant.
 */
#ifndef TN_BASE_CHUNKED_VEC_H
#define TN_BASE_CHUNKED_VEC_H

#include "base/assertion.h"
#include "base/budget.h"

enum {
    TN_STORE_SHIFT = 10,
    TN_STORE_CHUNK = 1 << TN_STORE_SHIFT
};

struct tn_chunked_vec {
    struct tn_budget *budget;
    char **chunks;
    size_t chunk_count;
    size_t chunk_capacity;
    uint64_t count; /* items */
    size_t item_size;
};

void tn_chunked_vec_init(struct tn_chunked_vec *store, struct tn_budget *budget, size_t item_size);
void tn_chunked_vec_fini(struct tn_chunked_vec *store);

/* Allocates the chunk for item `count`. Called by tn_chunked_vec_push. */
bool tn_chunked_vec_grow(struct tn_chunked_vec *store) TN_MUST_CHECK;

/* Item `index` < count. Borrowed until the vector is freed. */
static inline void *tn_chunked_vec_at(const struct tn_chunked_vec *store, uint64_t index)
{
    tn_assert(index < store->count);
    return store->chunks[index >> TN_STORE_SHIFT] +
           (size_t)(index & (TN_STORE_CHUNK - 1)) * store->item_size;
}

/* Appends an uninitialised item; NULL: see tn_budget_status. */
static inline void *tn_chunked_vec_push(struct tn_chunked_vec *store)
{
    if (tn_unlikely(store->count >> TN_STORE_SHIFT == store->chunk_count) &&
        !tn_chunked_vec_grow(store)) {
        return NULL;
    }
    store->count++;
    return tn_chunked_vec_at(store, store->count - 1);
}

#endif
