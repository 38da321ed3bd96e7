/* SPDX-License-Identifier: MIT */
/*
 * A bump allocator, freed as a whole, for the data of a reader. Allocations never move. Small
 * requests share chunks that double from 4 KiB to 1 MiB; a request larger than half of the next
 * chunk gets its own chunk. Cost: a comparison and an addition.
 */
#ifndef TN_BASE_ARENA_H
#define TN_BASE_ARENA_H

#include "base/budget.h"

struct tn_arena_chunk;

struct tn_arena {
    struct tn_budget *budget;
    struct tn_arena_chunk *chunks; /* newest first; the head is the current one */
    char *at;                      /* free part of the current chunk */
    size_t left;
    size_t next_size; /* of the next shared chunk */
};

void tn_arena_init(struct tn_arena *arena, struct tn_budget *budget);

/* Frees all memory; the arena is then empty and may be reused. */
void tn_arena_fini(struct tn_arena *arena);

/* Frees all allocations but keeps the current chunk for later ones. */
void tn_arena_clear(struct tn_arena *arena);

/* Uninitialised, aligned to 16 bytes; size 0 gives a valid pointer. NULL: see tn_budget_status. */
void *tn_arena_alloc(struct tn_arena *arena, size_t size) TN_MUST_CHECK;

/* `count` items of `size` bytes; NULL also when the product overflows. */
void *tn_arena_alloc_array(struct tn_arena *arena, size_t count, size_t size) TN_MUST_CHECK;

/* Copies of `count` items, and of a text with a NUL at its end. */
void *tn_arena_copy(struct tn_arena *arena, const void *items, size_t count,
                    size_t size) TN_MUST_CHECK;
char *tn_arena_copy_text(struct tn_arena *arena, const char *text, size_t length) TN_MUST_CHECK;

#endif
