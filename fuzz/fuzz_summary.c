/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a file of summaries, as they are and with the right checksum behind them. What is
 * taken is written, read and written again to the same bytes; and a report on it and an export end.
 */
#include "fuzz_target.h"

#include "fleet/fleet.h"
#include "tarn/export.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(bool right)
{
    if (!right) {
        abort();
    }
}

static enum tarn_status keep(void *context, const char *bytes, size_t size)
{
    return tn_vec_append(context, bytes, size) ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

static enum tarn_status drop(void *context, const char *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
    return TARN_OK;
}

static void use(struct tarn_fleet *fleet)
{
    const struct tarn_fleet_options how = {
        .struct_size = sizeof how, .device_total = (uint64_t)1 << 36, .since_step = 1};
    const struct tarn_writer nothing = {.write = drop};
    const enum tarn_status status = tarn_fleet_report(fleet, NULL, &how, &nothing, NULL);

    must(status == TARN_OK || tarn_fleet_rank_count(fleet) == 0 || status == TARN_ERR_MISMATCH ||
         status == TARN_ERR_FORMAT || status == TARN_ERR_LIMIT);
    must(tarn_export_fleet(fleet, TARN_EXPORT_JSONL, NULL, &nothing, NULL) == status);
}

static void write_again(struct tarn_fleet *fleet, const struct tn_vec *first)
{
    struct tarn_fleet *other;
    struct tn_vec second;
    const struct tarn_writer writer = {.write = keep, .context = &second};

    tn_vec_init(&second, 1);
    must(tarn_fleet_create(&other, NULL) == TARN_OK);
    must(tarn_fleet_load_memory(other, first->items, first->count, NULL, NULL) == TARN_OK);
    must(tarn_fleet_rank_count(other) == tarn_fleet_rank_count(fleet));
    must(tarn_fleet_write(other, &writer, NULL) == TARN_OK);
    must(second.count == first->count && memcmp(second.items, first->items, first->count) == 0);
    tarn_fleet_destroy(other);
    tn_vec_fini(&second);
}

static void read_bytes(const void *data, size_t size)
{
    const struct tarn_read_limits limits = {.max_bytes = 1 << 20, .max_memory = 1 << 24};
    struct tarn_error error = {.text = ""};
    struct tarn_fleet *fleet;
    struct tn_vec bytes;
    const struct tarn_writer writer = {.write = keep, .context = &bytes};

    tn_vec_init(&bytes, 1);
    must(tarn_fleet_create(&fleet, NULL) == TARN_OK);
    if (tarn_fleet_load_memory(fleet, data, size, &limits, &error) == TARN_OK) {
        must(tarn_fleet_write(fleet, &writer, NULL) == TARN_OK);
        write_again(fleet, &bytes);
        use(fleet);
    } else {
        must(error.text[0] != '\0' && fleet->stacks.count + fleet->ranks.count == 0);
    }
    tarn_fleet_destroy(fleet);
    tn_vec_fini(&bytes);
}

/* Bytes behind the last end of a line are in no line: whatever the checksum is, they are wrong. */
static uint64_t lines_hash(const char *text, size_t size)
{
    uint64_t hash = TN_STABLE_HASH_BEGIN;

    for (const char *end; (end = memchr(text, '\n', size)); text = end + 1) {
        hash = tn_line_hash(hash, text, (size_t)(end - text));
        size -= (size_t)(end - text) + 1;
    }
    return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char end[64];
    struct tn_vec bytes;
    const uint64_t hash = lines_hash((const char *)data, size);
    const int length = snprintf(end, sizeof end, "%s%016" PRIx64 "\"}\n", TN_SUMMARY_END, hash);

    read_bytes(data, size);
    tn_vec_init(&bytes, 1);
    if (tn_vec_append(&bytes, data, size) && tn_vec_append(&bytes, end, (size_t)length)) {
        read_bytes(bytes.items, bytes.count);
    }
    tn_vec_fini(&bytes);
    return 0;
}
