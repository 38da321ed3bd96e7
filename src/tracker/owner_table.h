/* SPDX-License-Identifier: MIT */
/*
 * Who has what: bytes by module and category on each device, now and at the peaks.
 *
 * A peak would have to copy all of it. Instead a peak only begins a new epoch, and an owner keeps
 * its bytes aside when it changes for the first time in an epoch: what it had at the peak are the
 * bytes kept aside if it has changed since, else those of now.
 *
 * Guarded by its owner. Cost of a change: an addition, and once an epoch a copy.
 */
#ifndef TN_TRACKER_OWNER_TABLE_H
#define TN_TRACKER_OWNER_TABLE_H

#include "base/map.h"
#include "base/vec.h"
#include "tarn/tracker.h"

struct tn_owner {
    uint32_t module; /* name */
    uint32_t device;
    uint64_t device_epoch; /* of the device's peak, when at_device_peak was kept */
    uint64_t moment_epoch;
    int64_t now[TARN_TRACK_CATEGORIES_MAX];
    int64_t at_device_peak[TARN_TRACK_CATEGORIES_MAX];
    int64_t at_moment[TARN_TRACK_CATEGORIES_MAX];
};

struct tn_owner_table {
    struct tn_map map;    /* module and device to owner */
    struct tn_vec owners; /* of struct tn_owner */
    uint64_t device_epochs[TARN_TRACK_DEVICES_MAX];
    uint64_t moment_epoch;
};

void tn_owner_table_init(struct tn_owner_table *table);
void tn_owner_table_fini(struct tn_owner_table *table);

/* Number of the owner, a new one with nothing if there is none; false when host memory is missing.
 */
bool tn_owner_get(struct tn_owner_table *table, uint32_t module, uint32_t device,
                  uint32_t *owner_out) TN_MUST_CHECK;

void tn_owner_change(struct tn_owner_table *table, uint32_t owner, uint32_t category,
                     int64_t change);

/* What everybody has now is what they had at the peak. */
void tn_owner_begin_device_peak(struct tn_owner_table *table, uint32_t device);
void tn_owner_begin_point(struct tn_owner_table *table);

const struct tn_owner *tn_owner_at(const struct tn_owner_table *table, size_t at);

/* Bytes by category at that moment. */
const int64_t *tn_owner_bytes(const struct tn_owner_table *table, const struct tn_owner *owner,
                              enum tarn_track_point moment);

/* NULL when it never had anything. */
const struct tn_owner *tn_owner_find(const struct tn_owner_table *table, uint32_t module,
                                     uint32_t device);

#endif
