/* SPDX-License-Identifier: MIT */
#include "private_pools.h"

#include "size_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    POOLS_SHOWN = 10
};

bool cli_pool_counts_read(struct cli_pool_counts *counts, const char *text)
{
    *counts = (struct cli_pool_counts){.count = 0};
    while (*text >= '0' && *text <= '9' && counts->count < CLI_POOL_COUNTS_MAX) {
        char *end;
        const unsigned long long number = strtoull(text, &end, 10);

        if (number == 0 || number > CLI_POOL_COUNT_MAX) {
            return false;
        }
        counts->items[counts->count++] = number;
        if (*end == '\0') {
            return true;
        }
        if (*end != ',') {
            return false;
        }
        text = end + 1;
    }
    return false;
}

enum tarn_status cli_private_pools_find(const struct tarn_snapshot *snapshot, int device,
                                        struct tarn_private_pools_result **pools_out,
                                        struct tarn_error *error)
{
    const struct tarn_report_options options = {
        .struct_size = sizeof options, .one_device = true, .device = device};
    size_t count = 0;
    const enum tarn_status status =
        tarn_private_pools_compute(snapshot, &options, pools_out, &count, error);

    if (status || count == 0) {
        *pools_out = NULL;
    }
    return status == TARN_ERR_HOST_MEMORY ? status : TARN_OK;
}

/* ---- the table ---- */

static void pool_print(uint64_t reserved, uint64_t free)
{
    (void)printf("%14s", cli_size_text(reserved).text);
    (void)printf("%14s", cli_size_text(reserved - free).text);
    (void)printf("%14s  ", cli_size_text(free).text);
}

void cli_private_pools_print(const struct tarn_private_pools_result *pools)
{
    const size_t shown = pools && pools->pool_count < POOLS_SHOWN ? pools->pool_count : POOLS_SHOWN;
    uint64_t reserved = 0;
    uint64_t free = 0;

    if (!pools || pools->pool_count == 0) {
        return;
    }
    (void)printf("\nprivate pools (CUDA graphs, MemPools) at the recorded reserved peak\n");
    (void)printf("%14s%14s%14s  pool\n", "reserved", "in blocks", "free");
    for (size_t i = 0; i < pools->pool_count; i++) {
        const struct tarn_private_pool *pool = &pools->pools[i];

        if (i < shown) {
            pool_print(pool->reserved, pool->free);
            (void)printf("private (%" PRIu64 ", %" PRIu64 ")\n", pool->pool[0], pool->pool[1]);
        } else {
            reserved += pool->reserved;
            free += pool->free;
        }
    }
    if (shown < pools->pool_count) {
        pool_print(reserved, free);
        (void)printf("others (%zu pool%s)\n", pools->pool_count - shown,
                     pools->pool_count - shown == 1 ? "" : "s");
    }
    (void)printf("%14s%28s  all of them, of %s reserved\n", cli_size_text(pools->reserved).text, "",
                 cli_size_text(pools->at.reserved).text);
}

void cli_private_pools_json(struct cli_json *json, const struct tarn_private_pools_result *pools)
{
    cli_json_open_array(json, "private_pools");
    for (size_t i = 0; pools && i < pools->pool_count; i++) {
        cli_json_open_object(json, NULL);
        cli_json_open_array(json, "pool");
        cli_json_number(json, NULL, pools->pools[i].pool[0]);
        cli_json_number(json, NULL, pools->pools[i].pool[1]);
        cli_json_close(json);
        cli_json_number(json, "reserved", pools->pools[i].reserved);
        cli_json_number(json, "free", pools->pools[i].free);
        cli_json_close(json);
    }
    cli_json_close(json);
}

/* ---- more pools ---- */

/* Beyond what sizes can be. */
static uint64_t sum_of(double bytes)
{
    return bytes < 0x1p62 ? (uint64_t)bytes : (uint64_t)1 << 62;
}

/* As large as those recorded are on average. */
static uint64_t pools_like_mean(const struct tarn_private_pools_result *pools, uint64_t count)
{
    return sum_of((double)pools->reserved * (double)count / (double)pools->pool_count);
}

/* The recorded ones, largest first, and beyond them as many as large as the largest. */
static uint64_t pools_at_most(const struct tarn_private_pools_result *pools, uint64_t count)
{
    const uint64_t more = count > pools->pool_count ? count - pools->pool_count : 0;
    double bytes = (double)more * (double)pools->pools[0].reserved;

    for (size_t i = 0; i < pools->pool_count && i < count; i++) {
        bytes += (double)pools->pools[i].reserved;
    }
    return sum_of(bytes);
}

static uint64_t rest_of(const struct tarn_private_pools_result *pools)
{
    return pools->at.reserved > pools->reserved ? pools->at.reserved - pools->reserved : 0;
}

static void counts_row(const struct tarn_private_pools_result *pools, uint64_t count, uint64_t room)
{
    const uint64_t all = rest_of(pools) + pools_like_mean(pools, count);
    const uint64_t most = rest_of(pools) + pools_at_most(pools, count);

    (void)printf("%13" PRIu64, count);
    (void)printf("%15s", cli_size_text(pools_like_mean(pools, count)).text);
    (void)printf("%15s", cli_size_text(all).text);
    (void)printf("%15s", cli_size_text(most).text);
    if (room > 0) {
        (void)printf("  %s", most <= room ? "yes" : all <= room ? "perhaps" : "no");
    }
    (void)putchar('\n');
}

void cli_pool_counts_print(const struct cli_pool_counts *counts,
                           const struct tarn_private_pools_result *pools, uint64_t room)
{
    (void)printf("\n%13s%15s%15s%15s%s\n", "private pools", "they reserve", "the run", "at most",
                 room > 0 ? "  fits" : "");
    counts_row(pools, pools->pool_count, room);
    for (int i = 0; i < counts->count; i++) {
        counts_row(pools, counts->items[i], room);
    }
    (void)printf(
        "assumed: other pools are as large as the %zu recorded on average (at most: as the\n"
        "largest), none shares memory with another, and the rest stays as recorded.\n"
        "Graphs that are captured into one shared pool need less: record all of them.\n",
        pools->pool_count);
}

void cli_pool_counts_json(struct cli_json *json, const struct cli_pool_counts *counts,
                          const struct tarn_private_pools_result *pools)
{
    cli_json_open_array(json, "pool_counts");
    for (int i = 0; i < counts->count; i++) {
        cli_json_open_object(json, NULL);
        cli_json_number(json, "pools", counts->items[i]);
        cli_json_number(json, "reserved_by_pools", pools_like_mean(pools, counts->items[i]));
        cli_json_number(json, "reserved",
                        rest_of(pools) + pools_like_mean(pools, counts->items[i]));
        cli_json_number(json, "reserved_at_most",
                        rest_of(pools) + pools_at_most(pools, counts->items[i]));
        cli_json_close(json);
    }
    cli_json_close(json);
}
