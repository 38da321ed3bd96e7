/* SPDX-License-Identifier: MIT */
/*
 * Lists of frames that repeat byte for byte. A stack that was seen before comes as the same row of
 * BINGET and LONG_BINGET opcodes; two thirds of a file are such rows. This cache takes the bytes
 * after a MARK and knows the stack that they make, so that they need not be executed again.
 *
 * Right because what a row refers to cannot change: frames in a list are sealed, and the cache is
 * dropped when a memo number is written a second time.
 *
 * Rows hang in buckets by their first 16 bytes, newest first; a look is given up after a few.
 */
#ifndef TN_SNAPSHOT_PICKLE_ROWS_H
#define TN_SNAPSHOT_PICKLE_ROWS_H

#include "base/arena.h"

enum {
    TN_ROW_BUCKETS = 1024,
    TN_ROW_BYTES_LEAST = 16
};

struct tn_row {
    const struct tn_row *next;
    const uint8_t *bytes; /* from the first opcode to APPENDS */
    size_t length;
    uint32_t stack;
};

struct tn_row_cache {
    struct tn_arena *arena; /* for rows; NULL: off */
    const struct tn_row *buckets[TN_ROW_BUCKETS];
    size_t bytes; /* kept so far */
};

void tn_row_cache_init(struct tn_row_cache *cache, struct tn_arena *arena);

/* From now on the cache finds and keeps nothing. */
void tn_row_cache_drop(struct tn_row_cache *cache);

/* The row with which the bytes begin, or NULL. */
const struct tn_row *tn_row_cache_find(const struct tn_row_cache *cache, const uint8_t *bytes,
                                       size_t size);

/* Keeps a row that made `stack`, if it is one: only memo reads, then APPENDS. Nothing happens when
 * it is not, or when there is no room. */
void tn_row_cache_keep(struct tn_row_cache *cache, const uint8_t *bytes, size_t size,
                       uint32_t stack);

#endif
