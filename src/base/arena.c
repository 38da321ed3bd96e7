/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include "base/checked.h"

#include <string.h>

enum {
    ARENA_ALIGN = 16,
#ifdef TN_NOTHING_AHEAD /* tests/torture: that each piece may not fit */
    CHUNK_FIRST = 2 * ARENA_ALIGN,
    CHUNK_LAST = CHUNK_FIRST
#else
    CHUNK_FIRST = 4096,
    CHUNK_LAST = 1 << 20
#endif
};

struct tn_arena_chunk {
    _Alignas(ARENA_ALIGN) struct tn_arena_chunk *next;
    size_t size; /* including this header */
};

void tn_arena_init(struct tn_arena *arena, struct tn_budget *budget)
{
    *arena = (struct tn_arena){.budget = budget, .next_size = CHUNK_FIRST};
}

static void chunks_free(const struct tn_arena *arena, struct tn_arena_chunk *chunk)
{
    while (chunk) {
        struct tn_arena_chunk *next = chunk->next;

        tn_budget_free(arena->budget, chunk, chunk->size);
        chunk = next;
    }
}

void tn_arena_fini(struct tn_arena *arena)
{
    chunks_free(arena, arena->chunks);
    tn_arena_init(arena, arena->budget);
}

void tn_arena_clear(struct tn_arena *arena)
{
    struct tn_arena_chunk *kept = arena->at ? arena->chunks : NULL; /* else all chunks are
                                                                       dedicated */

    if (!kept) {
        tn_arena_fini(arena);
        return;
    }
    chunks_free(arena, kept->next);
    kept->next = NULL;
    arena->at = (char *)(kept + 1);
    arena->left = kept->size - sizeof *kept;
}

static struct tn_arena_chunk *chunk_create(struct tn_arena *arena, size_t size)
{
    struct tn_arena_chunk *chunk = tn_budget_alloc(arena->budget, size);

    if (chunk) {
        chunk->size = size;
    }
    return chunk;
}

/* A dedicated chunk for one request, inserted after the current one. */
static void *arena_alloc_alone(struct tn_arena *arena, size_t size)
{
    struct tn_arena_chunk *chunk = chunk_create(arena, size + sizeof *chunk);

    if (!chunk) {
        return NULL;
    }
    if (arena->chunks) {
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
    } else {
        chunk->next = NULL;
        arena->chunks = chunk;
    }
    return chunk + 1;
}

static bool arena_refill(struct tn_arena *arena)
{
    struct tn_arena_chunk *chunk = chunk_create(arena, arena->next_size);

    if (!chunk) {
        return false;
    }
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->at = (char *)(chunk + 1);
    arena->left = arena->next_size - sizeof *chunk;
    if (arena->next_size < CHUNK_LAST) {
        arena->next_size *= 2;
    }
    return true;
}

void *tn_arena_alloc(struct tn_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2) {
        arena->budget->exceeded = true;
        return NULL;
    }
    size = size == 0 ? ARENA_ALIGN : (size + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (size > arena->left) {
        if (size > arena->next_size / 2) {
            return arena_alloc_alone(arena, size);
        }
        if (!arena_refill(arena)) {
            return NULL;
        }
    }
    void *piece = arena->at;
    arena->at += size;
    arena->left -= size;
    return piece;
}

void *tn_arena_alloc_array(struct tn_arena *arena, size_t count, size_t size)
{
    size_t bytes;

    if (!tn_mul_size(count, size, &bytes)) {
        arena->budget->exceeded = true;
        return NULL;
    }
    return tn_arena_alloc(arena, bytes);
}

void *tn_arena_copy(struct tn_arena *arena, const void *items, size_t count, size_t size)
{
    void *copy = tn_arena_alloc_array(arena, count, size);

    if (copy && count > 0) {
        memcpy(copy, items, count * size);
    }
    return copy;
}

char *tn_arena_copy_text(struct tn_arena *arena, const char *text, size_t length)
{
    char *copy = tn_arena_alloc(arena, length + 1);

    if (copy) {
        memcpy(copy, text, length);
        copy[length] = '\0';
    }
    return copy;
}
