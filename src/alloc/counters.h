/* SPDX-License-Identifier: MIT */
/*
 * The counters of tarn/stats.h and how they move. Each counter by pool moves twice: in "all" and in
 * the pool of the block, as PyTorch's StatArray. Peaks are taken at every increase. Guarded by the
 * engine's lock.
 */
#ifndef TN_ALLOC_COUNTERS_H
#define TN_ALLOC_COUNTERS_H

#include "base/assertion.h"
#include "tarn/stats.h"

struct tn_counters {
    struct tarn_stats stats;
};

void tn_counters_init(struct tn_counters *counters, uint64_t max_split_size);

/* peak = current in every counter. */
void tn_counters_reset_peaks(struct tn_counters *counters);

/* allocated = freed = 0 in every counter, and the plain numbers 0. */
void tn_counters_reset_accumulated(struct tn_counters *counters);

static inline void tn_stat_increase(struct tarn_stat *stat, uint64_t amount)
{
    stat->current += (int64_t)amount;
    stat->peak = stat->current > stat->peak ? stat->current : stat->peak;
    stat->allocated += (int64_t)amount;
}

/* The counters of oversize blocks and segments can become negative, as in PyTorch: what counts as
 * oversize is asked again at the free, and settings may have changed meanwhile. */
static inline void tn_stat_decrease(struct tarn_stat *stat, uint64_t amount)
{
    stat->current -= (int64_t)amount;
    stat->freed += (int64_t)amount;
}

static inline enum tarn_stat_pool tn_stat_pool_of(bool small)
{
    return small ? TARN_STAT_SMALL_POOL : TARN_STAT_LARGE_POOL;
}

static inline void tn_counters_increase(struct tn_counters *counters, enum tarn_stat_kind kind,
                                        bool small, uint64_t amount)
{
    tn_stat_increase(&counters->stats.by_pool[kind][TARN_STAT_ALL], amount);
    tn_stat_increase(&counters->stats.by_pool[kind][tn_stat_pool_of(small)], amount);
}

static inline void tn_counters_decrease(struct tn_counters *counters, enum tarn_stat_kind kind,
                                        bool small, uint64_t amount)
{
    tn_stat_decrease(&counters->stats.by_pool[kind][TARN_STAT_ALL], amount);
    tn_stat_decrease(&counters->stats.by_pool[kind][tn_stat_pool_of(small)], amount);
    tn_assert(counters->stats.by_pool[kind][tn_stat_pool_of(small)].current >= 0);
}

/* Increases or decreases by the sign of `change`; 0 moves nothing. */
static inline void tn_counters_change(struct tn_counters *counters, enum tarn_stat_kind kind,
                                      bool small, int64_t change)
{
    if (change > 0) {
        tn_counters_increase(counters, kind, small, (uint64_t)change);
    } else if (change < 0) {
        tn_counters_decrease(counters, kind, small, (uint64_t)-change);
    }
}

static inline int64_t tn_counters_current(const struct tn_counters *counters,
                                          enum tarn_stat_kind kind)
{
    return counters->stats.by_pool[kind][TARN_STAT_ALL].current;
}

#endif
