/* SPDX-License-Identifier: MIT */
/*
 * Bytes by device and category at one time point: one row per device, in order of first use. Rows
 * are found by linear search, because there are few devices.
 *
 * Owns its rows. Guarded by its owner. Only tn_breakdown_reserve can fail.
 */
#ifndef TN_TRACKER_BREAKDOWN_H
#define TN_TRACKER_BREAKDOWN_H

#include "base/attr.h"
#include "tarn/tracker.h"

/* All zero is empty. */
struct tn_breakdown {
    struct tarn_track_row *rows;
    size_t count;
    size_t capacity;
};

void tn_breakdown_fini(struct tn_breakdown *breakdown);

/* Reserves space for a total of `devices` rows; false when host memory runs out. */
bool tn_breakdown_reserve(struct tn_breakdown *breakdown, size_t devices) TN_MUST_CHECK;

/* NULL when the device has no row. Borrowed until rows are added or removed. */
struct tarn_track_row *tn_breakdown_find(const struct tn_breakdown *breakdown, uint32_t device);

/* The device's row; appends a zeroed one if it has none, for which space must be reserved. */
struct tarn_track_row *tn_breakdown_get(struct tn_breakdown *breakdown, uint32_t device);

void tn_breakdown_remove(struct tn_breakdown *breakdown, struct tarn_track_row *row);

/* `to` must have space for all rows. */
void tn_breakdown_copy(struct tn_breakdown *to, const struct tn_breakdown *from);

/* Replaces the device's row with `row`, or appends it to reserved space. */
void tn_breakdown_put(struct tn_breakdown *breakdown, const struct tarn_track_row *row);

#endif
