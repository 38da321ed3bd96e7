/* SPDX-License-Identifier: MIT */
#include "alloc/pool/counters.h"

#include "base/assertion.h"

#include "tarn/config.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- reading one kind of counter, "all" from both pools ---- */

/* Value for TARN_STAT_ALL, TARN_STAT_SMALL_POOL or TARN_STAT_LARGE_POOL. */
static int64_t by_pool(const int64_t values[TN_POOLS], int pool)
{
    return pool == TARN_STAT_ALL ? values[TN_SMALL] + values[TN_LARGE]
                                 : values[pool - TARN_STAT_SMALL_POOL];
}

struct tarn_stat tn_counter_read(const struct tn_counter *counter, int pool)
{
    const int64_t current = by_pool(counter->current, pool);
    const int64_t allocated = by_pool(counter->allocated, pool);

    return (struct tarn_stat){
        .current = current,
        .peak = counter->peak[pool],
        .allocated = allocated,
        .freed = by_pool(counter->origin, pool) + allocated - current,
    };
}

static struct tarn_stat live_read_out(const struct tn_live_counter *live, int pool)
{
    struct tarn_stat stat = tn_counter_read(&live->out, pool);

    stat.peak = larger(stat.peak, live->out_peak[pool]);
    return stat;
}

/* A block becomes active when it is allocated, and counts as freed when it stops waiting. */
static struct tarn_stat live_read_active(const struct tn_live_counter *live, int pool)
{
    struct tarn_stat stat = tn_counter_read(&live->out, pool);
    const int64_t waiting = by_pool(live->waiting, pool);

    stat.current += waiting;
    stat.freed += by_pool(live->waited, pool) - waiting;
    stat.peak = larger(stat.peak + waiting, live->active_peak[pool]);
    return stat;
}

void tn_counters_read(const struct tn_counters *counters, struct tarn_stats *stats_out)
{
    *stats_out = counters->totals;
    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        stats_out->by_pool[TARN_STAT_ALLOCATION][pool] = live_read_out(&counters->blocks, pool);
        stats_out->by_pool[TARN_STAT_ACTIVE][pool] = live_read_active(&counters->blocks, pool);
        stats_out->by_pool[TARN_STAT_ALLOCATED_BYTES][pool] = live_read_out(&counters->bytes, pool);
        stats_out->by_pool[TARN_STAT_ACTIVE_BYTES][pool] = live_read_active(&counters->bytes, pool);
        stats_out->by_pool[TARN_STAT_REQUESTED_BYTES][pool] =
            tn_counter_read(&counters->requested, pool);
        stats_out->by_pool[TARN_STAT_INACTIVE_SPLIT][pool] =
            tn_counter_read(&counters->split, pool);
        stats_out->by_pool[TARN_STAT_INACTIVE_SPLIT_BYTES][pool] =
            tn_counter_read(&counters->split_bytes, pool);
        stats_out->by_pool[TARN_STAT_SEGMENT][pool] = tn_counter_read(&counters->segments, pool);
        stats_out->by_pool[TARN_STAT_RESERVED_BYTES][pool] =
            tn_counter_read(&counters->reserved, pool);
    }
}

/* ---- waiting ---- */

/* Folds in the peaks of the period that ends. */
static void live_fold(struct tn_live_counter *live)
{
    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        const int64_t peak = live->out.peak[pool];

        live->out_peak[pool] = larger(live->out_peak[pool], peak);
        live->active_peak[pool] =
            larger(live->active_peak[pool], peak + by_pool(live->waiting, pool));
    }
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Starts a new period. Values that would raise neither peak count as reached already. */
static void live_restart(struct tn_live_counter *live)
{
    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        const int64_t known =
            smaller(live->out_peak[pool], live->active_peak[pool] - by_pool(live->waiting, pool));

        live->out.peak[pool] = larger(by_pool(live->out.current, pool), known);
    }
}

static void live_change_waiting(struct tn_live_counter *live, unsigned pool, int64_t change)
{
    live_fold(live);
    live->waiting[pool] += change;
    tn_assert(live->waiting[pool] >= 0);
    live_restart(live);
}

void tn_counters_begin_wait(struct tn_counters *counters, unsigned pool, uint64_t bytes)
{
    live_change_waiting(&counters->blocks, pool, 1);
    live_change_waiting(&counters->bytes, pool, (int64_t)bytes);
}

void tn_counters_end_wait(struct tn_counters *counters, unsigned pool, uint64_t bytes)
{
    live_change_waiting(&counters->blocks, pool, -1);
    live_change_waiting(&counters->bytes, pool, -(int64_t)bytes);
}

/* ---- beginning and resetting ---- */

void tn_counters_init(struct tn_counters *counters, uint64_t max_split_size)
{
    *counters = (struct tn_counters){0};
    counters->totals.struct_size = sizeof counters->totals;
    counters->totals.max_split_size = (int64_t)max_split_size;
}

void tn_counter_reset_peak(struct tn_counter *counter)
{
    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        counter->peak[pool] = by_pool(counter->current, pool);
    }
}

static void live_reset_peak(struct tn_live_counter *live)
{
    for (int pool = 0; pool < TARN_STAT_POOLS; pool++) {
        const int64_t current = by_pool(live->out.current, pool);

        live->out.peak[pool] = current;
        live->out_peak[pool] = current;
        live->active_peak[pool] = current + by_pool(live->waiting, pool);
    }
}

void tn_counters_reset_peaks(struct tn_counters *counters)
{
    struct tarn_stats *totals = &counters->totals;

    live_reset_peak(&counters->blocks);
    live_reset_peak(&counters->bytes);
    tn_counter_reset_peak(&counters->requested);
    tn_counter_reset_peak(&counters->split);
    tn_counter_reset_peak(&counters->split_bytes);
    tn_counter_reset_peak(&counters->segments);
    tn_counter_reset_peak(&counters->reserved);
    totals->oversize_allocations.peak = totals->oversize_allocations.current;
    totals->oversize_segments.peak = totals->oversize_segments.current;
}

void tn_counter_reset_accumulated(struct tn_counter *counter)
{
    for (int pool = 0; pool < TN_POOLS; pool++) {
        counter->allocated[pool] = 0;
        counter->origin[pool] = counter->current[pool];
    }
}

static void live_reset_accumulated(struct tn_live_counter *live)
{
    tn_counter_reset_accumulated(&live->out);
    for (int pool = 0; pool < TN_POOLS; pool++) {
        live->waited[pool] = live->waiting[pool];
    }
}

static void stat_reset_accumulated(struct tarn_stat *stat)
{
    stat->allocated = 0;
    stat->freed = 0;
}

void tn_counters_reset_accumulated(struct tn_counters *counters)
{
    struct tarn_stats *totals = &counters->totals;

    live_reset_accumulated(&counters->blocks);
    live_reset_accumulated(&counters->bytes);
    tn_counter_reset_accumulated(&counters->requested);
    tn_counter_reset_accumulated(&counters->split);
    tn_counter_reset_accumulated(&counters->split_bytes);
    tn_counter_reset_accumulated(&counters->segments);
    tn_counter_reset_accumulated(&counters->reserved);
    stat_reset_accumulated(&totals->oversize_allocations);
    stat_reset_accumulated(&totals->oversize_segments);
    totals->num_alloc_retries = 0;
    totals->num_ooms = 0;
    totals->num_sync_all_streams = 0;
    totals->num_device_alloc = 0;
    totals->num_device_free = 0;
    totals->num_oom_rejections = 0;
}

/* ---- names ---- */

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
