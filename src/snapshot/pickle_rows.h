/* SPDX-License-Identifier: MIT */
/*
 * A cache of lists of frames that repeat byte for byte. A repeated stack is the same row of BINGET
 * and LONG_BINGET opcodes; two thirds of a file are such rows. The cache maps the bytes after a
 * MARK to their stack, so that they need not be executed again.
 *
 * This is correct because the values of a row cannot change: frames in a list are sealed, and the
 * cache is disabled when a memo number is written a second time.
 *
 * Rows are in buckets by a hash of their first 16 bytes, newest first; a search stops after a few.
 */
#ifndef TN_SNAPSHOT_PICKLE_ROWS_H
#define TN_SNAPSHOT_PICKLE_ROWS_H

#include "base/arena.h"

enum {
    TN_ROW_BUCKETS = 4096, /* programs have some thousands of stacks */
    TN_ROW_BYTES_LEAST = 16
};

struct tn_row {
    const struct tn_row *next;
    uint64_t hash;        /* of the first 16 bytes */
    const uint8_t *bytes; /* from the first opcode to APPENDS */
    size_t length;
    uint32_t stack;
};

struct tn_row_cache {
    struct tn_arena *arena; /* for rows; NULL: off */
    const struct tn_row *buckets[TN_ROW_BUCKETS];
    size_t bytes; /* rows so far */
};

void tn_row_cache_init(struct tn_row_cache *cache, struct tn_arena *arena);

/* Disables the cache. */
void tn_row_cache_drop(struct tn_row_cache *cache);

/* The cached row at the start of the bytes, or NULL. */
const struct tn_row *tn_row_cache_find(const struct tn_row_cache *cache, const uint8_t *bytes,
                                       size_t size);

/* Adds the row of `stack`, if it consists of memo reads and APPENDS, and if there is room. */
void tn_row_cache_keep(struct tn_row_cache *cache, const uint8_t *bytes, size_t size,
                       uint32_t stack);

#endif
