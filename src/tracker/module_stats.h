/* SPDX-License-Identifier: MIT */
/*
 * One module's statistics: its sizes, the breakdown at each call of each of its states, and the
 * peak total of each device since it was last entered.
 *
 * Owns its states and calls. Guarded by its owner. Adding a call has two steps, one that may fail
 * and one that cannot, so that events are atomic.
 */
#ifndef TN_TRACKER_MODULE_STATS_H
#define TN_TRACKER_MODULE_STATS_H

#include "base/vec.h"
#include "tracker/breakdown.h"

struct tn_local_peak {
    uint32_t device;
    int64_t bytes;
};

struct tn_module_state {
    uint32_t state;
    struct tn_vec calls; /* of struct tn_breakdown, oldest first */
};

struct tn_module {
    uint64_t id;
    uint32_t name;
    struct tn_module *next_of_name; /* others of the same name */
    int64_t parameter_bytes;
    int64_t buffer_bytes;
    int64_t input_bytes;
    int64_t output_bytes; /* -1 until forward has finished */
    struct tn_vec states; /* of struct tn_module_state: those with calls in order of first use,
                             then those that a call is only reserved in */
    size_t state_count;   /* with calls */
    struct tn_local_peak peaks[TARN_TRACK_DEVICES_MAX]; /* in order of first use */
    size_t peak_count;
};

/* NULL when host memory runs out. */
struct tn_module *tn_module_create(uint64_t id, uint32_t name) TN_MUST_CHECK;
void tn_module_destroy(struct tn_module *module);

/* Reserves space for one more call in a state, with `devices` rows; beyond `calls_kept` (0 = no
 * limit) it will replace the oldest. */
bool tn_module_reserve_call(struct tn_module *module, uint32_t state, size_t devices,
                            size_t calls_kept) TN_MUST_CHECK;

/* Adds the call, a copy of `now`, in the space reserved with the same arguments. */
void tn_module_add_call(struct tn_module *module, uint32_t state, const struct tn_breakdown *now,
                        size_t calls_kept);

/* The newest call of a state; NULL when the module has never been in it. */
struct tn_breakdown *tn_module_newest_call(const struct tn_module *module, uint32_t state);

/* Restarts the peak totals from `now`. */
void tn_module_begin_peaks(struct tn_module *module, const struct tn_breakdown *now);

/* Raises the peak totals to those of `now`, and copies the rows of devices with a new peak to
 * `call`, which must have space. */
void tn_module_raise_peaks(struct tn_module *module, struct tn_breakdown *call,
                           const struct tn_breakdown *now);

/* State number `at` of module->state_count. */
const struct tn_module_state *tn_module_state_at(const struct tn_module *module, size_t at);

#endif
