/* SPDX-License-Identifier: MIT */
/*
 * Bytes that grow: numbers one after another, as the page reads them. A varint has seven bits a
 * byte, lowest first; zigzag is a varint of a signed number (0, -1, 1, -2, ...).
 *
 * Owns its bytes. When host memory is missing the column remembers it and later calls do nothing,
 * so that a writer checks once, at the end. Guarded by its owner.
 */
#ifndef TN_PAGE_COLUMN_H
#define TN_PAGE_COLUMN_H

#include "base/vec.h"
#include "tarn/writer.h"

#include <stdint.h>

enum {
    TN_VARINT_MAX = 10 /* bytes of a 64-bit number */
};

struct tn_column {
    struct tn_vec bytes;
    bool failed;
};

static inline void tn_column_init(struct tn_column *column)
{
    tn_vec_init(&column->bytes, 1);
    column->failed = false;
}

static inline void tn_column_fini(struct tn_column *column)
{
    tn_vec_fini(&column->bytes);
}

/* Forgets what is in it; keeps its memory. */
static inline void tn_column_clear(struct tn_column *column)
{
    column->bytes.count = 0;
}

void tn_column_put(struct tn_column *column, const void *bytes, size_t size);
void tn_column_put_byte(struct tn_column *column, uint8_t byte);
void tn_column_put_varint(struct tn_column *column, uint64_t number);

/* The step from one number to the next, modulo 2^64, as an unsigned number. */
static inline uint64_t tn_column_zigzag(uint64_t from, uint64_t to)
{
    const uint64_t step = to - from;
    const bool is_negative = step >> 63 != 0;

    return step << 1 ^ (is_negative ? UINT64_MAX : 0);
}

/* That step as a varint. */
void tn_column_put_step(struct tn_column *column, uint64_t from, uint64_t to);

/* A writer whose text goes into the column. TARN_ERR_HOST_MEMORY. */
struct tarn_writer tn_column_writer(struct tn_column *column);

#endif
