/* SPDX-License-Identifier: MIT */
#include "alloc/counters.h"

#include "tarn/config.h"

static void stat_reset_peak(struct tarn_stat *stat)
{
    stat->peak = stat->current;
}

static void stat_reset_accumulated(struct tarn_stat *stat)
{
    stat->allocated = 0;
    stat->freed = 0;
}

static void counters_each(struct tn_counters *counters, void (*apply)(struct tarn_stat *stat))
{
    for (int kind = 0; kind < TARN_STAT_KINDS; kind++) {
        for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
            apply(&counters->stats.by_pool[kind][pool]);
        }
    }
    apply(&counters->stats.oversize_allocations);
    apply(&counters->stats.oversize_segments);
}

void tn_counters_init(struct tn_counters *counters, uint64_t max_split_size)
{
    *counters = (struct tn_counters){0};
    counters->stats.struct_size = sizeof counters->stats;
    counters->stats.max_split_size = (int64_t)max_split_size;
}

void tn_counters_reset_peaks(struct tn_counters *counters)
{
    counters_each(counters, stat_reset_peak);
}

void tn_counters_reset_accumulated(struct tn_counters *counters)
{
    counters_each(counters, stat_reset_accumulated);
    counters->stats.num_alloc_retries = 0;
    counters->stats.num_ooms = 0;
    counters->stats.num_sync_all_streams = 0;
    counters->stats.num_device_alloc = 0;
    counters->stats.num_device_free = 0;
    counters->stats.num_oom_rejections = 0;
}

const char *tarn_stat_kind_name(enum tarn_stat_kind kind)
{
    static const char *const names[] = {
#define KIND_NAME(name, key, text) [TARN_STAT_##name] = key,
        TARN_STAT_MAP(KIND_NAME)
#undef KIND_NAME
    };
    return (unsigned)kind < TARN_STAT_KINDS ? names[kind] : "unknown";
}

const char *tarn_stat_pool_name(enum tarn_stat_pool pool)
{
    static const char *const names[] = {"all", "small_pool", "large_pool"};

    return (unsigned)pool < TARN_STAT_POOLS ? names[pool] : "unknown";
}
