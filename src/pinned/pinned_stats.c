/* SPDX-License-Identifier: MIT */
#include "pinned/pinned_stats.h"

#include "alloc/engine/stats_walk.h"
#include "base/clock.h"

void tn_pinned_duration_add(struct tarn_duration *duration, uint64_t begin)
{
    const int64_t took = (int64_t)((tn_clock_now_ns() - begin) / 1000);

    duration->total += took;
    duration->max = took > duration->max ? took : duration->max;
    duration->min = duration->count == 0 || took < duration->min ? took : duration->min;
    duration->count++;
}

static void stats_of(struct tarn_pinned_stats *stats, struct tarn_stat *all[4])
{
    all[0] = &stats->allocations;
    all[1] = &stats->active_requests;
    all[2] = &stats->allocated_bytes;
    all[3] = &stats->active_bytes;
}

void tn_pinned_stats_reset_peaks(struct tarn_pinned_stats *stats)
{
    struct tarn_stat *all[4];

    stats_of(stats, all);
    for (int i = 0; i < 4; i++) {
        all[i]->peak = all[i]->current;
    }
    stats->host_alloc_time.max = 0;
    stats->host_alloc_time.min = 0;
    stats->host_free_time.max = 0;
    stats->host_free_time.min = 0;
}

void tn_pinned_stats_reset_accumulated(struct tarn_pinned_stats *stats)
{
    struct tarn_stat *all[4];

    stats_of(stats, all);
    for (int i = 0; i < 4; i++) {
        all[i]->allocated = 0;
        all[i]->freed = 0;
    }
    stats->num_host_alloc = 0;
    stats->num_host_free = 0;
    stats->host_alloc_time.total = 0;
    stats->host_alloc_time.count = 0;
    stats->host_free_time.total = 0;
    stats->host_free_time.count = 0;
}

/* ---- by PyTorch's keys ---- */

static void show_duration(const struct tarn_stats_visitor *visitor, const char *key,
                          const struct tarn_duration *duration)
{
    visitor->begin(visitor->context, key);
    visitor->value(visitor->context, "total", duration->total);
    visitor->value(visitor->context, "max", duration->max);
    visitor->value(visitor->context, "min", duration->min);
    visitor->value(visitor->context, "count", duration->count);
    visitor->value(visitor->context, "avg",
                   duration->count == 0 ? 0 : duration->total / duration->count);
    visitor->end(visitor->context);
}

void tarn_pinned_stats_walk_nested(const struct tarn_pinned_stats *stats,
                                   const struct tarn_stats_visitor *visitor)
{
    visitor->value(visitor->context, "num_host_alloc", stats->num_host_alloc);
    visitor->value(visitor->context, "num_host_free", stats->num_host_free);
    tn_stats_show(visitor, "allocations", &stats->allocations);
    tn_stats_show(visitor, "active_requests", &stats->active_requests);
    tn_stats_show(visitor, "allocated_bytes", &stats->allocated_bytes);
    tn_stats_show(visitor, "active_bytes", &stats->active_bytes);
    show_duration(visitor, "host_alloc_time", &stats->host_alloc_time);
    show_duration(visitor, "host_free_time", &stats->host_free_time);
}

static void walk_stats(const void *stats, const struct tarn_stats_visitor *visitor)
{
    tarn_pinned_stats_walk_nested(stats, visitor);
}

void tarn_pinned_stats_walk(const struct tarn_pinned_stats *stats,
                            void (*visit)(void *context, const char *key, int64_t value),
                            void *context)
{
    tn_stats_flatten(walk_stats, stats, visit, context);
}
