/* SPDX-License-Identifier: MIT */
/*
 * Bytes by owning module and category on each device, now and at the peaks.
 *
 * Copying the table at every peak would be too slow. Instead a peak starts a new epoch, and an
 * owner saves its bytes before its first change in an epoch (copy on write). Its bytes at the peak
 * are the saved ones if it has changed since, otherwise the current ones.
 *
 * Guarded by its owner. Cost of a change: an addition, and a copy once per epoch.
 */
#ifndef TN_TRACKER_OWNER_TABLE_H
#define TN_TRACKER_OWNER_TABLE_H

#include "base/map.h"
#include "base/vec.h"
#include "tarn/tracker.h"

struct tn_owner {
    uint32_t module; /* name */
    uint32_t device;
    uint64_t device_epoch; /* epoch of the device's peak in which at_device_peak was saved */
    uint64_t total_peak_epoch;
    int64_t now[TARN_TRACK_CATEGORIES_MAX];
    int64_t at_device_peak[TARN_TRACK_CATEGORIES_MAX];
    int64_t at_total_peak[TARN_TRACK_CATEGORIES_MAX];
};

struct tn_owner_table {
    struct tn_map map;    /* module and device to owner */
    struct tn_vec owners; /* of struct tn_owner */
    uint64_t device_epochs[TARN_TRACK_DEVICES_MAX];
    uint64_t total_peak_epoch;
};

void tn_owner_table_init(struct tn_owner_table *table);
void tn_owner_table_fini(struct tn_owner_table *table);

/* Index of the owner, which is added with zero bytes if it is new; false when host memory runs
 * out. */
bool tn_owner_get(struct tn_owner_table *table, uint32_t module, uint32_t device,
                  uint32_t *owner_out) TN_MUST_CHECK;

void tn_owner_change(struct tn_owner_table *table, uint32_t owner, uint32_t category,
                     int64_t change);

/* Starts a new epoch: the current bytes are those at the peak. */
void tn_owner_begin_device_peak(struct tn_owner_table *table, uint32_t device);
void tn_owner_begin_point(struct tn_owner_table *table);

const struct tn_owner *tn_owner_at(const struct tn_owner_table *table, size_t at);

/* Bytes by category at that time point. */
const int64_t *tn_owner_bytes(const struct tn_owner_table *table, const struct tn_owner *owner,
                              enum tarn_track_point point);

/* NULL when it never owned anything. */
const struct tn_owner *tn_owner_find(const struct tn_owner_table *table, uint32_t module,
                                     uint32_t device);

#endif
