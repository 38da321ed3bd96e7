/* SPDX-License-Identifier: MIT */
/* Counters by PyTorch's flat keys. */
#include "tarn/stats.h"

#include "base/assertion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NAME_MAX_SIZE = 40,
    KEY_MAX = NAME_MAX_SIZE + 16,
    PLAIN = 6,
    PARTS = 4, /* of a counter: current, peak, allocated, freed */
    ROWS = PLAIN + PARTS * (TARN_STAT_KINDS * TARN_STAT_POOLS + 2)
};

struct row {
    char key[KEY_MAX];
    int64_t value;
};

struct rows {
    struct row row[ROWS];
    size_t count;
};

static void add(struct rows *rows, const char *name, const char *part, int64_t value)
{
    struct row *row = &rows->row[rows->count++];
    const int length =
        snprintf(row->key, sizeof row->key, "%.39s%s%.15s", name, *part ? "." : "", part);

    tn_assert(length > 0 && length < KEY_MAX);
    (void)length;
    row->value = value;
}

static void add_stat(struct rows *rows, const char *name, const struct tarn_stat *stat)
{
    add(rows, name, "current", stat->current);
    add(rows, name, "peak", stat->peak);
    add(rows, name, "allocated", stat->allocated);
    add(rows, name, "freed", stat->freed);
}

static void add_kind(struct rows *rows, const struct tarn_stats *stats, enum tarn_stat_kind kind)
{
    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        char name[NAME_MAX_SIZE];

        (void)snprintf(name, sizeof name, "%s.%s", tarn_stat_kind_name(kind),
                       tarn_stat_pool_name((enum tarn_stat_pool)pool));
        add_stat(rows, name, &stats->by_pool[kind][pool]);
    }
}

static int row_compare(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

void tarn_stats_walk(const struct tarn_stats *stats,
                     void (*visit)(void *context, const char *key, int64_t value), void *context)
{
    struct rows rows;

    rows.count = 0;
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        add_kind(&rows, stats, (enum tarn_stat_kind)kind);
    }
    add_stat(&rows, "oversize_allocations", &stats->oversize_allocations);
    add_stat(&rows, "oversize_segments", &stats->oversize_segments);
    add(&rows, "num_alloc_retries", "", stats->num_alloc_retries);
    add(&rows, "num_ooms", "", stats->num_ooms);
    add(&rows, "num_sync_all_streams", "", stats->num_sync_all_streams);
    add(&rows, "num_device_alloc", "", stats->num_device_alloc);
    add(&rows, "num_device_free", "", stats->num_device_free);
    add(&rows, "max_split_size", "", stats->max_split_size);
    tn_assert(rows.count == ROWS);
    qsort(rows.row, rows.count, sizeof rows.row[0], row_compare);
    for (size_t i = 0; i < rows.count; i++) {
        visit(context, rows.row[i].key, rows.row[i].value);
    }
}
