/* SPDX-License-Identifier: MIT */
/*
 * How far the counters of a stream cache may rise without a new peak of the heap. A quota is taken
 * off the heap's peaks: by counter (blocks, bytes, requested, split, split bytes), for "all" and
 * for each pool. Values of the same shape say what was used of it.
 */
#ifndef TN_ALLOC_FAST_QUOTA_H
#define TN_ALLOC_FAST_QUOTA_H

#include "alloc/fast/undo_log.h"
#include "alloc/pool/counters.h"

enum {
    TN_QUOTA_COUNTERS = 5
};

struct tn_quota {
    int64_t of[TN_QUOTA_COUNTERS][TARN_STAT_POOLS];
};

/* What one call changes, in one pool. */
struct tn_quota_change {
    int64_t of[TN_QUOTA_COUNTERS];
    unsigned pool;
};

static inline unsigned tn_quota_stat(unsigned pool)
{
    tn_assert(pool < TN_POOLS);
    return TARN_STAT_SMALL_POOL + pool;
}

/* The counters in the order of a quota's. */
static inline void tn_quota_list(struct tn_counters *counters,
                                 struct tn_counter *list_out[TN_QUOTA_COUNTERS])
{
    list_out[0] = &counters->blocks.out;
    list_out[1] = &counters->bytes.out;
    list_out[2] = &counters->requested;
    list_out[3] = &counters->split;
    list_out[4] = &counters->split_bytes;
}

static inline void tn_quota_add(struct tn_quota *quota, const struct tn_quota_change *change)
{
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        quota->of[c][TARN_STAT_ALL] += change->of[c];
        quota->of[c][tn_quota_stat(change->pool)] += change->of[c];
    }
}

/* What an entry of the undo log does to the counters, or undoes (sign -1). */
static inline struct tn_quota_change tn_quota_entry(const struct tn_undo_entry *entry, int64_t sign)
{
    return (struct tn_quota_change){
        .of = {sign, sign * (int64_t)entry->block->size, sign * (int64_t)entry->requested,
               sign * entry->split_blocks, sign * entry->split_bytes},
        .pool = entry->pool,
    };
}

/* Raises `most` to at least `quota`, counter by counter. */
static inline void tn_quota_raise(struct tn_quota *most, const struct tn_quota *quota)
{
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            if (quota->of[c][stat] > most->of[c][stat]) {
                most->of[c][stat] = quota->of[c][stat];
            }
        }
    }
}

static inline bool tn_quota_covers(const struct tn_quota *quota, const struct tn_quota *used)
{
    bool covers = true;

    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            covers = covers && used->of[c][stat] <= quota->of[c][stat];
        }
    }
    return covers;
}

/* What the counters of a cache have used. */
static inline struct tn_quota tn_quota_used(struct tn_counters *counters)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];
    struct tn_quota used;

    tn_quota_list(counters, list);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        used.of[c][TARN_STAT_ALL] = tn_counter_all(list[c]);
        for (unsigned pool = 0; pool < TN_POOLS; pool++) {
            used.of[c][tn_quota_stat(pool)] = list[c]->current[pool];
        }
    }
    return used;
}

/* The room between the current values of the heap and its peaks. */
static inline struct tn_quota tn_quota_room(struct tn_counters *counters)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];
    const struct tn_quota now = tn_quota_used(counters);
    struct tn_quota room;

    tn_quota_list(counters, list);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            room.of[c][stat] = list[c]->peak[stat] - now.of[c][stat];
        }
    }
    return room;
}

/* Takes a quota off the heap's peaks (sign -1), or gives it back (1). */
static inline void tn_quota_move_peaks(const struct tn_quota *quota, struct tn_counters *counters,
                                       int64_t sign)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];

    tn_quota_list(counters, list);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        for (int stat = 0; stat < TARN_STAT_POOLS; stat++) {
            list[c]->peak[stat] += sign * quota->of[c][stat];
        }
    }
}

static inline void tn_quota_fold_counter(struct tn_counter *counter, struct tn_counter *of_cache)
{
    for (unsigned pool = 0; pool < TN_POOLS; pool++) {
        counter->allocated[pool] += of_cache->allocated[pool];
        counter->current[pool] += of_cache->current[pool];
        of_cache->allocated[pool] = 0;
        of_cache->current[pool] = 0;
    }
    for (unsigned pool = 0; pool < TN_POOLS; pool++) {
        tn_counter_move(counter, pool, 0); /* the peaks, once both pools are right */
    }
}

/* Adds to the heap's counters what those of a cache have become, which start again at 0. A new peak
 * counts: without quota, add after each call. */
static inline void tn_quota_fold(struct tn_counters *counters, struct tn_counters *of_cache)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];
    struct tn_counter *from[TN_QUOTA_COUNTERS];
    struct tarn_stat *oversize = &of_cache->totals.oversize_allocations;

    tn_stat_increase(&counters->totals.oversize_allocations, (uint64_t)oversize->allocated);
    *oversize = (struct tarn_stat){0}; /* frees of such blocks are counted by the heap itself */
    tn_quota_list(counters, list);
    tn_quota_list(of_cache, from);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        tn_quota_fold_counter(list[c], from[c]);
    }
}

/* Whether a call of that change stays within the quota. */
static inline bool tn_quota_allows(const struct tn_quota *quota, struct tn_counters *counters,
                                   const struct tn_quota_change *change)
{
    struct tn_counter *list[TN_QUOTA_COUNTERS];
    bool allows = true;

    tn_quota_list(counters, list);
    for (int c = 0; c < TN_QUOTA_COUNTERS; c++) {
        const int64_t now = list[c]->current[change->pool] + change->of[c];
        const int64_t all = now + list[c]->current[change->pool ^ 1U];

        allows = allows & (now <= quota->of[c][tn_quota_stat(change->pool)]) &
                 (all <= quota->of[c][TARN_STAT_ALL]);
    }
    return allows;
}

#endif
