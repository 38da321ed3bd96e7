/* SPDX-License-Identifier: MIT */
#include "page/column.h"

#include <string.h>

/* Room for `size` bytes, or NULL once host memory was missing. */
static uint8_t *room_get(struct tn_column *column, size_t size)
{
    if (column->failed || !tn_vec_reserve(&column->bytes, size)) {
        column->failed = true;
        return NULL;
    }
    return (uint8_t *)column->bytes.items + column->bytes.count;
}

void tn_column_put(struct tn_column *column, const void *bytes, size_t size)
{
    uint8_t *room = size > 0 ? room_get(column, size) : NULL;

    if (room) {
        memcpy(room, bytes, size);
        column->bytes.count += size;
    }
}

void tn_column_put_byte(struct tn_column *column, uint8_t byte)
{
    uint8_t *room = room_get(column, 1);

    if (room) {
        *room = byte;
        column->bytes.count++;
    }
}

void tn_column_put_varint(struct tn_column *column, uint64_t number)
{
    uint8_t *room = room_get(column, TN_VARINT_MAX);
    size_t count = 0;

    if (!room) {
        return;
    }
    for (; number >= 0x80; number >>= 7) {
        room[count++] = (uint8_t)(number | 0x80);
    }
    room[count++] = (uint8_t)number;
    column->bytes.count += count;
}

void tn_column_put_step(struct tn_column *column, uint64_t from, uint64_t to)
{
    tn_column_put_varint(column, tn_column_zigzag(from, to));
}

static enum tarn_status column_write(void *context, const char *bytes, size_t size)
{
    struct tn_column *column = context;

    tn_column_put(column, bytes, size);
    return column->failed ? TARN_ERR_HOST_MEMORY : TARN_OK;
}

struct tarn_writer tn_column_writer(struct tn_column *column)
{
    return (struct tarn_writer){column_write, column};
}
