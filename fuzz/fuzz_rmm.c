/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a log of RMM. What is accepted is replayed and written as a pickle, which can be
 * read again. Nothing may leak.
 */
#include "fuzz_target.h"

#include "tarn/host.h"
#include "tarn/replay.h"

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

static void write_and_read(const struct tarn_snapshot *snapshot)
{
    struct text text = {NULL, 0};
    const struct tarn_writer writer = {collect, &text};
    struct tarn_snapshot *again = NULL;

    if (tarn_snapshot_write(snapshot, TARN_SNAPSHOT_PICKLE, &writer, NULL) ||
        tarn_snapshot_load_memory(text.bytes, text.size, NULL, &again, NULL) ||
        tarn_snapshot_entry_count(again) != tarn_snapshot_entry_count(snapshot)) {
        abort();
    }
    tarn_snapshot_destroy(again);
    free(text.bytes);
}

static void replay(const struct tarn_snapshot *snapshot)
{
    struct tarn_replay_result result = {.struct_size = sizeof result};
    struct tarn_replay *made = NULL;

    if (tarn_replay_create(snapshot, -1, &made, NULL) == TARN_OK) {
        if (tarn_replay_run(made, NULL, &result, NULL)) {
            abort();
        }
        tarn_replay_destroy(made);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_snapshot *snapshot = NULL;

    if (size < 7 || memcmp(data, "Thread,", 7) != 0) {
        return 0;
    }
    if (tarn_snapshot_load_memory(data, size, NULL, &snapshot, NULL) == TARN_OK) {
        write_and_read(snapshot);
        replay(snapshot);
    }
    tarn_snapshot_destroy(snapshot);
    if (tarn_host_get_usage().live_bytes != 0) {
        abort();
    }
    return 0;
}
