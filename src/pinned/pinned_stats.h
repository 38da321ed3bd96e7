/* SPDX-License-Identifier: MIT */
/* The counters of tarn/pinned.h, beyond single ones (alloc/pool/counters.h). Guarded by the
 * allocator's lock. */
#ifndef TN_PINNED_PINNED_STATS_H
#define TN_PINNED_PINNED_STATS_H

#include "tarn/pinned.h"

/* Adds a call that started at `begin` nanoseconds and ends now. */
void tn_pinned_duration_add(struct tarn_duration *duration, uint64_t begin);

void tn_pinned_stats_reset_peaks(struct tarn_pinned_stats *stats);
void tn_pinned_stats_reset_accumulated(struct tarn_pinned_stats *stats);

#endif
