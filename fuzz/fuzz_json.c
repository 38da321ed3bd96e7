/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a snapshot in JSON. What is accepted is written in both forms and read again: that
 * must work, and written once more it must be the same, to the byte. Nothing may leak.
 */
#include "fuzz_target.h"

#include "tarn/host.h"
#include "tarn/snapshot.h"

#include <stdlib.h>
#include <string.h>

struct text {
    char *bytes;
    size_t size;
};

static enum tarn_status collect(void *context, const char *bytes, size_t size)
{
    struct text *text = context;
    char *grown = realloc(text->bytes, text->size + size);

    if (!grown) {
        return TARN_ERR_HOST_MEMORY;
    }
    memcpy(grown + text->size, bytes, size);
    text->bytes = grown;
    text->size += size;
    return TARN_OK;
}

static struct text write_out(const struct tarn_snapshot *snapshot, enum tarn_snapshot_format format)
{
    struct text text = {NULL, 0};
    const struct tarn_writer writer = {collect, &text};

    if (tarn_snapshot_write(snapshot, format, &writer, NULL)) {
        abort();
    }
    return text;
}

static void write_and_read(const struct tarn_snapshot *snapshot, enum tarn_snapshot_format format)
{
    struct text first = write_out(snapshot, format);
    struct tarn_snapshot *again = NULL;

    if (tarn_snapshot_load_memory(first.bytes, first.size, NULL, &again, NULL)) {
        abort();
    }
    struct text second = write_out(again, format);

    if (first.size != second.size || memcmp(first.bytes, second.bytes, first.size) != 0) {
        abort();
    }
    tarn_snapshot_destroy(again);
    free(first.bytes);
    free(second.bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const struct tarn_read_limits limits = {
        .struct_size = sizeof limits, .max_memory = 64 << 20, .max_bytes = 1 << 20};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;
    const bool is_json = size > 0 && bytes[0] != 0 && strchr("{[ \t\r\n", bytes[0]) != NULL;

    if (is_json && tarn_snapshot_load_memory(bytes, size, &limits, &snapshot, &error) == TARN_OK) {
        write_and_read(snapshot, TARN_SNAPSHOT_PICKLE);
        write_and_read(snapshot, TARN_SNAPSHOT_JSON);
        tarn_snapshot_destroy(snapshot);
    }
    if (tarn_host_get_usage().live_count != 0) {
        abort();
    }
    return 0;
}
