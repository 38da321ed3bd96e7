/* SPDX-License-Identifier: MIT */
/*
 * Counters under PyTorch's keys: a walk over the levels of its dictionary, and the flat, sorted
 * form made from any such walk. No host memory, no lock.
 */
#ifndef TN_ALLOC_ENGINE_STATS_WALK_H
#define TN_ALLOC_ENGINE_STATS_WALK_H

#include "tarn/stats.h"

/* The four numbers of a counter, as a level of its own. */
void tn_stats_show(const struct tarn_stats_visitor *visitor, const char *key,
                   const struct tarn_stat *stat);

/* A walk over levels, as tarn_stats_walk_nested. */
typedef void (*tn_stats_walk)(const void *stats, const struct tarn_stats_visitor *visitor);

/* Shows what `walk` shows, keys joined by dots and in order. At most 128 numbers, keys of at most
 * 63 bytes, four levels. */
void tn_stats_flatten(tn_stats_walk walk, const void *stats,
                      void (*visit)(void *context, const char *key, int64_t value), void *context);

#endif
