/* SPDX-License-Identifier: MIT */
#include "base/chunked_vec.h"

#include <string.h>

void tn_chunked_vec_init(struct tn_chunked_vec *vec, struct tn_budget *budget, size_t item_size)
{
    *vec = (struct tn_chunked_vec){.budget = budget, .item_size = item_size};
}

void tn_chunked_vec_fini(struct tn_chunked_vec *vec)
{
    for (size_t i = 0; i < vec->chunk_count; i++) {
        tn_budget_free(vec->budget, vec->chunks[i], vec->item_size * TN_CHUNKED_VEC_CHUNK);
    }
    tn_budget_free(vec->budget, vec->chunks, vec->chunk_capacity * sizeof *vec->chunks);
    tn_chunked_vec_init(vec, vec->budget, vec->item_size);
}

static bool chunks_grow_list(struct tn_chunked_vec *vec)
{
    const size_t capacity = vec->chunk_capacity == 0 ? 8 : vec->chunk_capacity * 2;
    char **chunks = tn_budget_alloc(vec->budget, capacity * sizeof *chunks);

    if (!chunks) {
        return false;
    }
    if (vec->chunks) {
        memcpy(chunks, vec->chunks, vec->chunk_count * sizeof *chunks);
    }
    tn_budget_free(vec->budget, vec->chunks, vec->chunk_capacity * sizeof *chunks);
    vec->chunks = chunks;
    vec->chunk_capacity = capacity;
    return true;
}

bool tn_chunked_vec_grow(struct tn_chunked_vec *vec)
{
    if (vec->chunk_count == vec->chunk_capacity && !chunks_grow_list(vec)) {
        return false;
    }
    char *chunk = tn_budget_alloc(vec->budget, vec->item_size * TN_CHUNKED_VEC_CHUNK);
    if (!chunk) {
        return false;
    }
    vec->chunks[vec->chunk_count++] = chunk;
    return true;
}
