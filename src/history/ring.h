/* SPDX-License-Identifier: MIT */
/*
 * A ring buffer of the last N events. Its memory is reserved at creation and committed as it fills.
 * A new event overwrites the oldest one when the ring is full. Entries hold references, which the
 * owner releases: it receives the overwritten entry. Guarded by its owner. Cost: O(1), one cache
 * line written.
 */
#ifndef TN_HISTORY_RING_H
#define TN_HISTORY_RING_H

#include "base/attr.h"
#include "base/intern.h"
#include "tarn/event.h"

/* One event. */
struct tn_ring_entry {
    uint64_t address;
    uint64_t size;
    uint64_t stream;
    uint64_t ticks;            /* base/ticks.h */
    struct tn_interned *stack; /* NULL = none */
    struct tn_interned *extra; /* pool and texts; NULL = default pool, "N/A" and "" */
    uint32_t action;           /* enum tarn_action */
    int32_t device;
};

struct tn_ring {
    struct tn_ring_entry *entries;
    uint64_t capacity; /* > 0 */
    uint64_t count;
    uint64_t next;        /* index of the next entry */
    uint64_t overwritten; /* overwritten entries */
};

/* False without host memory. */
bool tn_ring_init(struct tn_ring *ring, uint64_t capacity) TN_MUST_CHECK;

/* The owner must release the references first. */
void tn_ring_fini(struct tn_ring *ring);

/* The slot for a new entry. If the ring was full, *full_out is true and the slot still contains the
 * oldest entry, which is overwritten. */
static inline struct tn_ring_entry *tn_ring_push(struct tn_ring *ring, bool *full_out)
{
    struct tn_ring_entry *entry = &ring->entries[ring->next];

    ring->next = ring->next + 1 == ring->capacity ? 0 : ring->next + 1;
    *full_out = ring->count == ring->capacity;
    if (*full_out) {
        ring->overwritten++;
    } else {
        ring->count++;
    }
    return entry;
}

/* Entry `index` < count, oldest first. */
struct tn_ring_entry *tn_ring_at(const struct tn_ring *ring, uint64_t index);

/* Copies `count` entries from `index` on, which exist. */
void tn_ring_copy_range(const struct tn_ring *ring, uint64_t index, uint64_t count,
                        struct tn_ring_entry *entries);

/* Copies the newest `count` entries (or all, if fewer), oldest first; returns their number. */
uint64_t tn_ring_copy(const struct tn_ring *ring, struct tn_ring_entry *entries, uint64_t count);

/* Empties the ring; `overwritten` stays. */
void tn_ring_clear(struct tn_ring *ring);

#endif
