/* SPDX-License-Identifier: MIT */
/*
 * The tracker's state, shared by the files of this folder.
 *
 * Invariants (tarn_tracker_check recomputes all of them):
 *   - a row of `now` is the sum of its device's storages by category; `total` is the sum of rows
 *   - the same bytes, by owner, are in `owners`
 *   - a storage that counts bytes has a row; a row whose total falls to 0 is removed
 *   (re-classifying an empty storage may create one that is all zeros)
 *   - `active` contains the names whose scope counts at least one active module, each once, the
 *   innermost last
 *   - every module is in `modules`, in `order` and in the chain of its name
 *   - `now`, `peaks`, `total_peak` and the newest call of each state of each module have space for
 *   every device, so that operators and storages need no memory for rows
 *
 * The lock guards everything after it. Ids of names and texts never change.
 */
#ifndef TN_TRACKER_TRACK_CORE_H
#define TN_TRACKER_TRACK_CORE_H

#include "base/lock.h"
#include "base/map.h"
#include "base/os_fork.h"
#include "base/vec.h"
#include "tracker/breakdown.h"
#include "tracker/iteration_list.h"
#include "tracker/module_stats.h"
#include "tracker/name_list.h"
#include "tracker/owner_table.h"
#include "tracker/storage_table.h"

enum {
    TN_TRACK_GRANULARITY = 512, /* PyTorch's smallest block */
    TN_MODULE_GLOBAL = 0        /* name of the scope outside all modules */
};

/* By module name. */
struct tn_scope {
    struct tn_module *first; /* known modules of this name */
    uint32_t active;         /* number of active modules */
};

struct tarn_tracker {
    struct tarn_tracker_options options; /* constant */
    struct tn_fork_watch fork;
    struct tn_lock lock; /* guards all below */

    struct tn_name_list names[TARN_TRACK_NAMES_COUNT];
    bool rounds[TARN_TRACK_DEVICES_MAX]; /* by device: whether sizes are rounded up */

    struct tn_storage_table storages;
    struct tn_owner_table owners;
    struct tn_breakdown now;
    struct tn_breakdown peaks;      /* of each device separately */
    struct tn_breakdown total_peak; /* at the peak of the sum of all devices */
    struct tn_breakdown at_end;     /* `now` before the deletions at the end, if `is_ending` */
    bool is_ending;                 /* the last events of a log were such deletions */
    int64_t total;                  /* of `now` */
    int64_t total_peak_bytes;
    struct tn_iteration_list iterations;

    struct tn_map modules;      /* id + 1 to struct tn_module * */
    struct tn_vec order;        /* of struct tn_module *, in order of first use */
    struct tn_vec scopes;       /* of struct tn_scope, by name */
    struct tn_vec active;       /* of uint32_t, names */
    struct tn_vec listed;       /* ... of the ACTIVE events before an OP_DONE */
    struct tn_module *entering; /* entered, not ready; NULL = none */
    bool entering_is_new;
    uint32_t entering_state;
    int64_t entering_inputs;
    int64_t leaving_outputs;
    bool tensor_is_done; /* CREATE: ignore the remaining storages of this tensor */
    bool in_step;
    bool in_recomputation; /* of `recomputed`: activation checkpointing */
    uint64_t recomputed;   /* id of a module */
};

/* Applies one event; the lock is held. On failure nothing changes, and the text names the event and
 * the reason. */
enum tarn_status tn_track_apply(struct tarn_tracker *tracker, const struct tarn_track_event *event,
                                struct tarn_error *error) TN_MUST_CHECK;

/* Name of the innermost active module, TN_MODULE_GLOBAL if there is none. */
uint32_t tn_track_innermost(const struct tarn_tracker *tracker);

/* Copies iteration `at` < tn_iteration_list_count. */
struct tn_iteration tn_track_iteration(const struct tarn_tracker *tracker, size_t at);

/* The breakdown at that time point. */
const struct tn_breakdown *tn_track_breakdown(const struct tarn_tracker *tracker,
                                              enum tarn_track_point point);

struct tn_scope *tn_track_scope(const struct tarn_tracker *tracker, uint32_t name);
/* NULL when it is unknown. */
struct tn_module *tn_track_module_find(const struct tarn_tracker *tracker, uint64_t id);

struct tn_module *tn_track_module_at(const struct tarn_tracker *tracker, size_t at);
const char *tn_track_name(const struct tarn_tracker *tracker, enum tarn_track_names names,
                          uint32_t id);

#endif
