/* SPDX-License-Identifier: MIT */
/*
 * The internals of a history, for the module that captures snapshots.
 *
 * Locks: `lock` (rank TN_LOCK_SINK) guards the ring, the annotations and what belongs to them; it
 * is taken under the allocator's lock when an event arrives. The tables have their own locks
 * (base/intern.h), and `symbol_lock` guards the symbols. None of these is held while another is
 * taken, except that references may be released under `lock`.
 *
 * References: each entry of the ring holds one to its stack and one to its extra, the history holds
 * one to the last used extra, the allocator holds one per block and segment.
 */
#ifndef TN_HISTORY_HISTORY_H
#define TN_HISTORY_HISTORY_H

#include "base/biased_lock.h"
#include "base/intern.h"
#include "base/lock.h"
#include "base/os_fork.h"
#include "base/ticks.h"
#include "history/ring.h"
#include "tarn/history.h"

struct tn_symbols;

/* An entry of history->extras; both texts follow, each NUL-terminated. */
struct tn_extra {
    uint64_t pool_id[2];
    char texts[];
};

/* One annotation; its texts are entries of history->extras without the header above. */
struct tn_annotation_entry {
    uint64_t ticks;
    struct tn_interned *name;
    struct tn_interned *fields[2 * TARN_ANNOTATION_FIELDS_MAX]; /* key, value, key, ... */
    uint32_t field_count;
    int32_t device;
    enum tarn_annotation_stage stage;
};

struct tarn_history {
    struct tn_fork_watch fork;
    struct tn_biased_lock lock;
    struct tn_ring ring;
    uint64_t now; /* ticks of the last event */
    uint64_t skip_actions;
    uint64_t entries_skipped;
    uint64_t clearings; /* how often all entries were forgotten, and numbered from 0 again */
    struct tn_interned *last_extra; /* NULL = none */
    struct tn_annotation_entry *annotations;
    uint32_t annotation_count;
    uint32_t annotation_next;
    uint64_t annotations_overwritten;

    struct tn_intern stacks; /* a word for the host language's id, then return addresses */
    struct tn_intern extras; /* struct tn_extra, and texts of annotations */

    struct tn_lock symbol_lock;
    struct tn_symbols *symbols; /* NULL until first used */

    struct tarn_history_options options; /* defaults filled in; constant except max_entries */
    _Atomic int stack_source;            /* enum tarn_stack_source; read before any lock */
    _Atomic uint32_t pins; /* snapshots that the owner did not ask for and does not know of */
    struct tarn_host_frames host; /* constant; all zero = none */
    struct tn_tick_origin origin; /* constant: time of creation */
};

/* A copy of the entries at one time point, oldest first. Stacks and extras stay valid until it is
 * released.
 *
 * An entry never changes until it is overwritten, and has a number: how many came before it since
 * the last clearing. So most of them are copied before that time point, in slices; at the time
 * point the few that came since are added, and those that were overwritten since are left out. */
struct tn_history_copy {
    struct tn_ring_entry *entries; /* in `room` */
    uint64_t count;
    struct tn_ring_entry *room;
    uint64_t capacity;  /* of the room */
    uint64_t first;     /* number of the entry that the room begins with */
    uint64_t filled;    /* entries in the room */
    uint64_t clearings; /* of the history, when they were copied */
    struct tn_annotation_entry *annotations;
    uint64_t annotation_count;
    double tick_length; /* ns */
};

/* Two steps, so that the second, which may run under the allocator's lock, copies only what came
 * since the first. It may be repeated, for a later time point. From the first on, stacks of blocks
 * stay valid as well. False when host memory runs out. */
bool tn_history_copy_prepare(struct tarn_history *history,
                             struct tn_history_copy *copy) TN_MUST_CHECK;
void tn_history_copy_take(struct tarn_history *history, struct tn_history_copy *copy);
void tn_history_copy_release(struct tarn_history *history, struct tn_history_copy *copy);

/* The texts and pool of an entry. */
struct tn_extra_view {
    uint64_t pool_id[2];
    const char *compile_context;
    const char *user_metadata;
};

struct tn_extra_view tn_history_extra(const struct tn_interned *extra);

/* The number that the host language assigned to a stack, 0 = none. */
uint64_t tn_history_host_stack(const struct tn_interned *stack);

/* An entry of the copy as callers see it. */
struct tarn_history_entry tn_history_entry_shown(const struct tarn_history *history,
                                                 const struct tn_history_copy *copy,
                                                 const struct tn_ring_entry *entry);

/* The history that the sink belongs to, which its owner cannot destroy until it is unpinned:
 * tarn_history_destroy waits. Call it where the sink cannot be removed meanwhile. NULL for a sink
 * of another kind. */
struct tarn_history *tn_history_pin(const struct tarn_sink *sink);
void tn_history_unpin(struct tarn_history *history);

int64_t tn_history_time_us(const struct tarn_history *history, const struct tn_history_copy *copy,
                           uint64_t ticks);

#endif
