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
    TN_CHUNKED_VEC_SHIFT = 10,
    TN_CHUNKED_VEC_CHUNK = 1 << TN_CHUNKED_VEC_SHIFT
};

struct tn_chunked_vec {
    struct tn_budget *budget;
    char **chunks;
    size_t chunk_count;
    size_t chunk_capacity;
    uint64_t count; /* items */
    size_t item_size;
};

void tn_chunked_vec_init(struct tn_chunked_vec *vec, struct tn_budget *budget, size_t item_size);
void tn_chunked_vec_fini(struct tn_chunked_vec *vec);

/* Allocates the chunk for item `count`. Called by tn_chunked_vec_push. */
bool tn_chunked_vec_grow(struct tn_chunked_vec *vec) TN_MUST_CHECK;

/* Item `index` < count. Borrowed until the vector is freed. */
static inline void *tn_chunked_vec_at(const struct tn_chunked_vec *vec, uint64_t index)
{
    tn_assert(index < vec->count);
    return vec->chunks[index >> TN_CHUNKED_VEC_SHIFT] +
           (size_t)(index & (TN_CHUNKED_VEC_CHUNK - 1)) * vec->item_size;
}

/* Appends an uninitialised item; NULL: see tn_budget_status. */
static inline void *tn_chunked_vec_push(struct tn_chunked_vec *vec)
{
    if (tn_unlikely(vec->count >> TN_CHUNKED_VEC_SHIFT == vec->chunk_count) &&
        !tn_chunked_vec_grow(vec)) {
        return NULL;
    }
    vec->count++;
    return tn_chunked_vec_at(vec, vec->count - 1);
}

#endif
