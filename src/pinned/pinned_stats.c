/* SPDX-License-Identifier: MIT */
#include "pinned/pinned_stats.h"

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
