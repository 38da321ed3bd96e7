/* SPDX-License-Identifier: MIT */
/*
 * Output in small pieces to a struct tarn_writer through a large buffer. The first failure is kept:
 * later calls do nothing, and tn_bytes_finish returns it. Guarded by its owner. Cost: a comparison
 * and the copy.
 */
#ifndef TN_BASE_BYTE_OUT_H
#define TN_BASE_BYTE_OUT_H

#include "base/attr.h"
#include "tarn/writer.h"

#include <stdbool.h>
#include <string.h>

enum {
    TN_BYTES_BUFFER = 1 << 16
};

struct tn_byte_out {
    const struct tarn_writer *writer;
    enum tarn_status status;
    size_t used;
    uint64_t written; /* bytes passed to the writer */
    unsigned char buffer[TN_BYTES_BUFFER];
};

/* Borrows the writer. */
static inline void tn_bytes_init(struct tn_byte_out *out, const struct tarn_writer *writer)
{
    out->writer = writer;
    out->status = TARN_OK;
    out->used = 0;
    out->written = 0;
}

/* Flushes the buffer. */
void tn_bytes_flush(struct tn_byte_out *out);

/* Returns space for 64 bytes; tn_bytes_advance sets how many were used. */
static inline unsigned char *tn_bytes_room(struct tn_byte_out *out)
{
    if (tn_unlikely(out->used > TN_BYTES_BUFFER - 64)) {
        tn_bytes_flush(out);
    }
    return out->buffer + out->used;
}

/* The same for any number of bytes up to the size of the buffer. */
static inline unsigned char *tn_bytes_room_for(struct tn_byte_out *out, size_t size)
{
    if (tn_unlikely(size > TN_BYTES_BUFFER - out->used)) {
        tn_bytes_flush(out);
    }
    return out->buffer + out->used;
}

static inline void tn_bytes_advance(struct tn_byte_out *out, size_t size)
{
    out->used += size;
}

static inline void tn_bytes_put_one(struct tn_byte_out *out, unsigned char byte)
{
    *tn_bytes_room(out) = byte;
    out->used++;
}

void tn_bytes_put(struct tn_byte_out *out, const void *bytes, size_t size);

/* Flushes the buffer; returns the first failure. */
enum tarn_status tn_bytes_finish(struct tn_byte_out *out) TN_MUST_CHECK;

#endif
