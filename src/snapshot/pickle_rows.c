/* SPDX-License-Identifier: MIT */
#include "snapshot/pickle_rows.h"

#include <string.h>

enum {
    BINGET = 'h',
    LONG_BINGET = 'j',
    APPENDS = 'e',
    LOOKS_MAX = 8,
    KEPT_BYTES_MAX = 16 << 20
};

void tn_row_cache_init(struct tn_row_cache *cache, struct tn_arena *arena)
{
    memset(cache, 0, sizeof *cache);
    cache->arena = arena;
}

void tn_row_cache_drop(struct tn_row_cache *cache)
{
    cache->arena = NULL;
}

/* Of the first 16 bytes; the high bits are well mixed. */
static uint64_t row_hash(const uint8_t *bytes)
{
    uint64_t words[2];

    memcpy(words, bytes, sizeof words);
    return (words[0] ^ words[1] * 31) * 0x9e3779b97f4a7c15u;
}

static size_t row_bucket(uint64_t hash)
{
    return (size_t)(hash >> 52);
}

_Static_assert(TN_ROW_BUCKETS == 1 << (64 - 52), "as many as the bits of row_bucket");

const struct tn_row *tn_row_cache_find(const struct tn_row_cache *cache, const uint8_t *bytes,
                                       size_t size)
{
    if (!cache->arena || size < TN_ROW_BYTES_LEAST) {
        return NULL;
    }
    const uint64_t hash = row_hash(bytes);
    const struct tn_row *row = cache->buckets[row_bucket(hash)];
    for (unsigned looks = 0; row && looks < LOOKS_MAX; looks++, row = row->next) {
        if (row->hash == hash && row->length <= size &&
            memcmp(row->bytes, bytes, row->length) == 0) {
            return row;
        }
    }
    return NULL;
}

static bool bytes_are_row(const uint8_t *bytes, size_t size)
{
    size_t i = 0;

    while (i < size - 1 && (bytes[i] == BINGET || bytes[i] == LONG_BINGET)) {
        i += bytes[i] == BINGET ? 2 : 5;
    }
    return i == size - 1 && bytes[i] == APPENDS;
}

void tn_row_cache_keep(struct tn_row_cache *cache, const uint8_t *bytes, size_t size,
                       uint32_t stack)
{
    if (!cache->arena || size < TN_ROW_BYTES_LEAST || size > KEPT_BYTES_MAX - cache->bytes ||
        !bytes_are_row(bytes, size)) {
        return;
    }
    struct tn_row *row = tn_arena_alloc(cache->arena, sizeof *row);
    uint8_t *copy = row ? tn_arena_alloc(cache->arena, size) : NULL;
    if (!copy) {
        return;
    }
    const uint64_t hash = row_hash(bytes);
    const struct tn_row **bucket = &cache->buckets[row_bucket(hash)];
    memcpy(copy, bytes, size);
    *row = (struct tn_row){*bucket, hash, copy, size, stack};
    *bucket = row;
    cache->bytes += size;
}
