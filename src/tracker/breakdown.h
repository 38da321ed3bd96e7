/* SPDX-License-Identifier: MIT */
/*
 * Bytes by device and category at one moment: a row for each device, in the order in which the
 * devices came. Rows are found by a walk: there are few devices.
 *
 * Owns its rows. Guarded by its owner. Room is made beforehand (tn_breakdown_reserve), all else
 * cannot fail.
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

/* Room for `devices` rows in all; false when host memory is missing. */
bool tn_breakdown_reserve(struct tn_breakdown *breakdown, size_t devices) TN_MUST_CHECK;

/* NULL when the device has no row. Borrowed until rows come or go. */
struct tarn_track_row *tn_breakdown_find(const struct tn_breakdown *breakdown, uint32_t device);

/* The device's row, a new one of zeros at the end if it has none; there is room. */
struct tarn_track_row *tn_breakdown_get(struct tn_breakdown *breakdown, uint32_t device);

void tn_breakdown_remove(struct tn_breakdown *breakdown, struct tarn_track_row *row);

/* `to` has room for all rows. */
void tn_breakdown_copy(struct tn_breakdown *to, const struct tn_breakdown *from);

/* Sets the device's row to `row`: in its place if it has one, else at the end, where there is
 * room. */
void tn_breakdown_put(struct tn_breakdown *breakdown, const struct tarn_track_row *row);

#endif
