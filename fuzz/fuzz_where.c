/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as an expression. A refused one says why and where; an accepted one picks blocks of a
 * small trace. References to groups are left out: matching them may take any time.
 */
#include "fuzz_target.h"

#include "tarn/report.h"

#include <stdlib.h>
#include <string.h>

static const char trace[] =
    "{\"segments\": [], \"device_traces\": [["
    "{\"action\": \"alloc\", \"addr\": 8192, \"size\": 1000, \"stream\": 0, \"time_us\": 10,"
    " \"frames\": [{\"name\": \"inner\", \"filename\": \"/u/a.py\", \"line\": 1},"
    " {\"name\": \"outer\", \"filename\": \"/u/b.py\", \"line\": 2}]},"
    "{\"action\": \"alloc\", \"addr\": 4096, \"size\": 20, \"stream\": 7, \"time_us\": 20,"
    " \"frames\": [], \"user_metadata\": \"kv_cache\", \"compile_context\": \"0/0\"},"
    "{\"action\": \"free_requested\", \"addr\": 8192, \"size\": 1000, \"stream\": 0,"
    " \"time_us\": 30},"
    "{\"action\": \"free_completed\", \"addr\": 8192, \"size\": 1000, \"stream\": 0,"
    " \"time_us\": 40}]]}";

static void demand(bool holds)
{
    if (!holds) {
        abort();
    }
}

static enum tarn_status discard(void *context, const char *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
    return TARN_OK;
}

static void blocks_pick(const struct tarn_where *where)
{
    const struct tarn_selection selection = {.struct_size = sizeof selection, .where = where};
    const struct tarn_report_options options = {.struct_size = sizeof options,
                                                .selection = &selection};
    const struct tarn_writer writer = {.write = discard};
    struct tarn_snapshot *snapshot;
    struct tarn_error error;

    demand(tarn_snapshot_load_memory(trace, sizeof trace - 1, NULL, &snapshot, &error) == TARN_OK);
    const enum tarn_status status = tarn_report_live(snapshot, &options, &writer, &error);

    demand(status == TARN_OK || status == TARN_ERR_NOT_FOUND); /* no block matches */
    tarn_snapshot_destroy(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tarn_where *where;
    struct tarn_error error;
    char *text = malloc(size + 1);

    if (!text) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    if (strchr(text, '\\')) {
        free(text);
        return 0;
    }
    const enum tarn_status status = tarn_where_parse(text, &where, &error);

    demand((where != NULL) == (status == TARN_OK));
    if (status == TARN_OK) {
        blocks_pick(where);
    } else {
        demand(status == TARN_ERR_INVALID_ARGUMENT || status == TARN_ERR_LIMIT);
        demand(error.offset >= 0 && (uint64_t)error.offset <= strlen(text));
        demand(error.text[0] != '\0');
    }
    tarn_where_destroy(where);
    free(text);
    return 0;
}
