/* SPDX-License-Identifier: MIT */
/*
 * The counters of tarn/stats.h, kept so that a call changes few numbers. What follows from others
 * is computed on reading:
 *
 *   "all"                  the sum of both pools; only its peak is kept
 *   freed                  value at the last reset + allocated since - current value
 *   active, active_bytes   allocated + waiting for streams. While no block starts or stops waiting,
 *                          both change alike; so the peaks of what is allocated are kept for such a
 *                          period, and folded into both when waiting changes
 *
 * Peaks are taken at every increase, as PyTorch does. Guarded by the heap's lock.
 */
#ifndef TN_ALLOC_POOL_COUNTERS_H
#define TN_ALLOC_POOL_COUNTERS_H

#include "base/assertion.h"
#include "base/attr.h"
#include "tarn/stats.h"

/* The two pools, as an index. */
enum {
    TN_SMALL,
    TN_LARGE,
    TN_POOLS
};

struct tn_counter {
    int64_t current[TN_POOLS];
    int64_t allocated[TN_POOLS]; /* increases since the last reset of accumulated counters */
    int64_t origin[TN_POOLS];    /* current at that reset */
    int64_t peak[TARN_STAT_POOLS];
};

/* Blocks that are allocated, or their bytes: two counters of tarn_stats, this one and "active". */
struct tn_live_counter {
    struct tn_counter out;     /* allocated; `peak` since the last fold */
    int64_t waiting[TN_POOLS]; /* freed, and used by streams that have not finished */
    int64_t waited[TN_POOLS];  /* `waiting` at the last reset of accumulated counters */
    int64_t out_peak[TARN_STAT_POOLS];
    int64_t active_peak[TARN_STAT_POOLS];
};

struct tn_counters {
    struct tn_live_counter blocks;
    struct tn_live_counter bytes;
    struct tn_counter requested; /* bytes asked for, of active blocks */
    struct tn_counter split;     /* free blocks of split segments */
    struct tn_counter split_bytes;
    struct tn_counter segments;
    struct tn_counter reserved;
    struct tarn_stats totals; /* only what has no pool is used */
};

void tn_counters_init(struct tn_counters *counters, uint64_t max_split_size);

/* peak = current in every counter. */
void tn_counters_reset_peaks(struct tn_counters *counters);

/* allocated = freed = 0 in every counter, and the totals 0. */
void tn_counters_reset_accumulated(struct tn_counters *counters);

/* What users read. */
void tn_counters_read(const struct tn_counters *counters, struct tarn_stats *stats_out);

/* The same of one counter; `pool` is an enum tarn_stat_pool. */
void tn_counter_reset_peak(struct tn_counter *counter);
void tn_counter_reset_accumulated(struct tn_counter *counter);
struct tarn_stat tn_counter_read(const struct tn_counter *counter, int pool);

/* A block of `bytes`, no longer allocated, starts to wait for streams; and stops waiting. */
void tn_counters_begin_wait(struct tn_counters *counters, unsigned pool, uint64_t bytes);
void tn_counters_end_wait(struct tn_counters *counters, unsigned pool, uint64_t bytes);

/* Whether a counter of both pools can be changed by it without an overflow, as all can in practice:
 * requests are below 2^60. */
static inline bool tn_counter_is_small(int64_t value)
{
    return value > -((int64_t)1 << 61) && value < (int64_t)1 << 61;
}

/* Of both pools. */
static inline int64_t tn_counter_all(const struct tn_counter *counter)
{
    tn_assert(tn_counter_is_small(counter->current[TN_SMALL]));
    tn_assert(tn_counter_is_small(counter->current[TN_LARGE]));
    return counter->current[TN_SMALL] + counter->current[TN_LARGE];
}

static inline int64_t tn_counters_active_bytes(const struct tn_counters *counters)
{
    return tn_counter_all(&counters->bytes.out) + counters->bytes.waiting[TN_SMALL] +
           counters->bytes.waiting[TN_LARGE];
}

static inline unsigned tn_counter_pool(bool small)
{
    return small ? TN_SMALL : TN_LARGE;
}

/* Changes the current value, up or down, and the peaks, but does not count the increase. */
static TN_INLINE void tn_counter_move(struct tn_counter *counter, unsigned pool, int64_t amount)
{
    tn_assert(pool < TN_POOLS && tn_counter_is_small(amount));
    tn_assert(tn_counter_is_small(counter->current[TN_SMALL]));
    tn_assert(tn_counter_is_small(counter->current[TN_LARGE]));
    const int64_t now = counter->current[pool] + amount;
    const int64_t all = now + counter->current[pool ^ 1U];

    counter->current[pool] = now;
    if (tn_unlikely(now > counter->peak[TARN_STAT_SMALL_POOL + pool])) {
        counter->peak[TARN_STAT_SMALL_POOL + pool] = now;
    }
    if (tn_unlikely(all > counter->peak[TARN_STAT_ALL])) {
        counter->peak[TARN_STAT_ALL] = all;
    }
}

static inline void tn_counter_increase(struct tn_counter *counter, unsigned pool, uint64_t amount)
{
    counter->allocated[pool] += (int64_t)amount;
    tn_counter_move(counter, pool, (int64_t)amount);
}

static inline void tn_counter_decrease(struct tn_counter *counter, unsigned pool, uint64_t amount)
{
    tn_assert(pool < TN_POOLS && tn_counter_is_small((int64_t)amount));
    tn_assert(tn_counter_is_small(counter->current[pool]));
    counter->current[pool] -= (int64_t)amount;
}

/* Increases or decreases, by the sign of `change`. Without a branch, which could not be predicted:
 * a decrease stays below all peaks. */
static TN_INLINE void tn_counter_change(struct tn_counter *counter, unsigned pool, int64_t change)
{
    counter->allocated[pool] += change > 0 ? change : 0;
    tn_counter_move(counter, pool, change);
}

/* A block is allocated, and a block that was allocated is freed. */
static inline void tn_counters_allocate(struct tn_counters *counters, unsigned pool, uint64_t bytes,
                                        uint64_t requested)
{
    tn_counter_increase(&counters->blocks.out, pool, 1);
    tn_counter_increase(&counters->bytes.out, pool, bytes);
    tn_counter_increase(&counters->requested, pool, requested);
}

static inline void tn_counters_free(struct tn_counters *counters, unsigned pool, uint64_t bytes)
{
    tn_counter_decrease(&counters->blocks.out, pool, 1);
    tn_counter_decrease(&counters->bytes.out, pool, bytes);
}

/* Counters without pools. Those of oversize blocks and segments can become negative, as in PyTorch:
 * what counts as oversize is decided again at the free, and settings may have changed since. */
static inline void tn_stat_increase(struct tarn_stat *stat, uint64_t amount)
{
    tn_assert(tn_counter_is_small(stat->current) && tn_counter_is_small((int64_t)amount));
    tn_assert(tn_counter_is_small(stat->allocated));
    stat->current += (int64_t)amount;
    stat->peak = stat->current > stat->peak ? stat->current : stat->peak;
    stat->allocated += (int64_t)amount;
}

static inline void tn_stat_decrease(struct tarn_stat *stat, uint64_t amount)
{
    tn_assert(tn_counter_is_small(stat->current) && tn_counter_is_small((int64_t)amount));
    tn_assert(tn_counter_is_small(stat->freed));
    stat->current -= (int64_t)amount;
    stat->freed += (int64_t)amount;
}

#endif
