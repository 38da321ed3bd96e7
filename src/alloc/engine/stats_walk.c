/* SPDX-License-Identifier: MIT */
#include "alloc/engine/stats_walk.h"

#include "base/assertion.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_MAX = 64,
    LEVELS_MAX = 4,
    ROWS_MAX = 128
};

/* ---- levels ---- */

void tn_stats_show(const struct tarn_stats_visitor *visitor, const char *key,
                   const struct tarn_stat *stat)
{
    visitor->begin(visitor->context, key);
    visitor->value(visitor->context, "current", stat->current);
    visitor->value(visitor->context, "peak", stat->peak);
    visitor->value(visitor->context, "allocated", stat->allocated);
    visitor->value(visitor->context, "freed", stat->freed);
    visitor->end(visitor->context);
}

static void show_kind(const struct tarn_stats_visitor *visitor, const struct tarn_stats *stats,
                      enum tarn_stat_kind kind)
{
    visitor->begin(visitor->context, tarn_stat_kind_name(kind));
    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        tn_stats_show(visitor, tarn_stat_pool_name((enum tarn_stat_pool)pool),
                      &stats->by_pool[kind][pool]);
    }
    visitor->end(visitor->context);
}

void tarn_stats_walk_nested(const struct tarn_stats *stats,
                            const struct tarn_stats_visitor *visitor)
{
    visitor->value(visitor->context, "num_alloc_retries", stats->num_alloc_retries);
    visitor->value(visitor->context, "num_ooms", stats->num_ooms);
    visitor->value(visitor->context, "max_split_size", stats->max_split_size);
    visitor->value(visitor->context, "num_sync_all_streams", stats->num_sync_all_streams);
    visitor->value(visitor->context, "num_device_alloc", stats->num_device_alloc);
    visitor->value(visitor->context, "num_device_free", stats->num_device_free);
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        show_kind(visitor, stats, (enum tarn_stat_kind)kind);
    }
    tn_stats_show(visitor, "oversize_allocations", &stats->oversize_allocations);
    tn_stats_show(visitor, "oversize_segments", &stats->oversize_segments);
}

/* ---- flat ---- */

struct row {
    char key[KEY_MAX];
    int64_t value;
};

struct rows {
    struct row row[ROWS_MAX];
    size_t count;
    char prefix[KEY_MAX]; /* keys of the open levels, each followed by a dot */
    size_t length[LEVELS_MAX + 1];
    int depth;
};

static void rows_begin(void *context, const char *key)
{
    struct rows *rows = context;
    const size_t before = rows->length[rows->depth];
    const int added = snprintf(rows->prefix + before, KEY_MAX - before, "%s.", key);

    tn_assert(added > 0 && before + (size_t)added < KEY_MAX && rows->depth < LEVELS_MAX);
    rows->length[++rows->depth] = before + (size_t)added;
}

static void rows_value(void *context, const char *key, int64_t value)
{
    struct rows *rows = context;
    struct row *row = &rows->row[rows->count++];
    const size_t before = rows->length[rows->depth];

    tn_assert(rows->count <= ROWS_MAX && before + strlen(key) < KEY_MAX);
    memcpy(row->key, rows->prefix, before);
    memcpy(row->key + before, key, strlen(key) + 1);
    row->value = value;
}

static void rows_end(void *context)
{
    struct rows *rows = context;

    tn_assert(rows->depth > 0);
    rows->depth--;
}

static int row_compare(const void *a, const void *b)
{
    return strcmp(((const struct row *)a)->key, ((const struct row *)b)->key);
}

void tn_stats_flatten(tn_stats_walk walk, const void *stats,
                      void (*visit)(void *context, const char *key, int64_t value), void *context)
{
    struct rows rows;
    const struct tarn_stats_visitor visitor = {&rows, rows_begin, rows_value, rows_end};

    rows.count = 0;
    rows.depth = 0;
    rows.length[0] = 0;
    walk(stats, &visitor);
    qsort(rows.row, rows.count, sizeof rows.row[0], row_compare);
    for (size_t i = 0; i < rows.count; i++) {
        visit(context, rows.row[i].key, rows.row[i].value);
    }
}

static void walk_stats(const void *stats, const struct tarn_stats_visitor *visitor)
{
    tarn_stats_walk_nested(stats, visitor);
}

void tarn_stats_walk(const struct tarn_stats *stats,
                     void (*visit)(void *context, const char *key, int64_t value), void *context)
{
    tn_stats_flatten(walk_stats, stats, visit, context);
}
