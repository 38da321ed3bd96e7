/* SPDX-License-Identifier: MIT */
#include "alloc/pool/pool.h"

#include "base/assertion.h"
#include "base/host_mem.h"

#include <string.h>

void tn_pool_init(struct tn_pool *pool, bool is_small, struct tn_private_pool *owner,
                  const struct tn_segment_map *by_age)
{
    *pool = (struct tn_pool){.is_small = is_small, .owner = owner, .by_age = by_age};
}

void tn_pool_fini(struct tn_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        tn_assert(tn_free_set_count(pool->sets[i]) == 0);
        tn_free_set_destroy(pool->sets[i]);
    }
    tn_host_free(pool->sets, pool->capacity * sizeof(struct tn_free_set *));
    *pool = (struct tn_pool){0};
}

/* Index of the first set whose stream is not below. */
static uint32_t pool_index(const struct tn_pool *pool, tarn_stream stream)
{
    uint32_t low = 0;
    uint32_t high = pool->count;

    while (low < high) {
        const uint32_t middle = (low + high) / 2;

        if (pool->sets[middle]->stream < stream) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static TN_COLD struct tn_free_set *pool_add_set(struct tn_pool *pool, uint32_t at,
                                                tarn_stream stream)
{
    if (pool->count == pool->capacity) {
        const uint32_t wanted = pool->capacity ? pool->capacity * 2 : 4;
        struct tn_free_set **moved =
            tn_host_resize(pool->sets, pool->capacity * sizeof(struct tn_free_set *),
                           wanted * sizeof(struct tn_free_set *));

        if (!moved) {
            return NULL;
        }
        pool->sets = moved;
        pool->capacity = wanted;
    }
    struct tn_free_set *set = tn_free_set_create(pool, stream, pool->by_age);

    if (set) {
        set->find_count = &pool->find_count;
        memmove(&pool->sets[at + 1], &pool->sets[at],
                (pool->count - at) * sizeof(struct tn_free_set *));
        pool->sets[at] = set;
        pool->count++;
    }
    return set;
}

struct tn_free_set *tn_pool_get_set_slow(struct tn_pool *pool, tarn_stream stream)
{
    const uint32_t at = pool_index(pool, stream);
    struct tn_free_set *set = at < pool->count && pool->sets[at]->stream == stream
                                  ? pool->sets[at]
                                  : pool_add_set(pool, at, stream);

    if (set) {
        pool->last_found = set;
    }
    return set;
}

/* ---- blocks ---- */

void tn_pool_reorder(struct tn_pool *pool, const struct tn_segment_map *by_age)
{
    pool->by_age = by_age;
    for (uint32_t i = 0; i < pool->count; i++) {
        tn_free_set_reorder(pool->sets[i], by_age);
    }
}

void tn_pool_rekey(struct tn_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        tn_free_set_rekey(pool->sets[i]);
    }
}

void tn_pool_settle(const struct tn_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        tn_free_set_settle(pool->sets[i]);
    }
}

/* First block of the first set from index `at` on that has one. */
static struct tn_block *pool_first_from(const struct tn_pool *pool, uint32_t at)
{
    for (; at < pool->count; at++) {
        struct tn_block *block = tn_free_set_first(pool->sets[at]);

        if (block) {
            return block;
        }
    }
    return NULL;
}

struct tn_block *tn_pool_first(const struct tn_pool *pool)
{
    return pool_first_from(pool, 0);
}

struct tn_block *tn_pool_next(const struct tn_pool *pool, const struct tn_block *block)
{
    struct tn_block *next = tn_free_set_next(block->set, block);

    return next ? next : pool_first_from(pool, pool_index(pool, block->set->stream) + 1);
}

uint64_t tn_pool_free_bytes(const struct tn_pool *pool)
{
    uint64_t bytes = 0;

    for (const struct tn_block *b = tn_pool_first(pool); b; b = tn_pool_next(pool, b)) {
        bytes += b->size;
    }
    return bytes;
}

void tn_pool_trim(struct tn_pool *pool)
{
    for (uint32_t i = 0; i < pool->count; i++) {
        tn_free_set_trim(pool->sets[i]);
    }
}

size_t tn_pool_memory(const struct tn_pool *pool)
{
    size_t bytes = pool->capacity * sizeof(struct tn_free_set *);

    for (uint32_t i = 0; i < pool->count; i++) {
        bytes += tn_free_set_memory(pool->sets[i]);
    }
    return bytes;
}
