/* SPDX-License-Identifier: MIT */
#include "base/byte_out.h"

static void hand_over(struct tn_byte_out *out, const void *bytes, size_t size)
{
    if (out->status == TARN_OK && size > 0) {
        out->status = out->writer->write(out->writer->context, bytes, size);
        out->written += size;
    }
}

void tn_bytes_flush(struct tn_byte_out *out)
{
    hand_over(out, out->buffer, out->used);
    out->used = 0;
}

void tn_bytes_put(struct tn_byte_out *out, const void *bytes, size_t size)
{
    if (size > TN_BYTES_BUFFER - out->used) {
        tn_bytes_flush(out);
    }
    if (size > TN_BYTES_BUFFER) {
        hand_over(out, bytes, size);
        return;
    }
    memcpy(out->buffer + out->used, bytes, size);
    out->used += size;
}

enum tarn_status tn_bytes_finish(struct tn_byte_out *out)
{
    tn_bytes_flush(out);
    return out->status;
}
