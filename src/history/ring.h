/* SPDX-License-Identifier: MIT */
/*
 * The last N events: a ring of fixed size whose memory is got at once and touched only as it fills.
 * When it is full the oldest entry gives way. Entries hold references that the owner counts: it is
 * told which entry goes. Guarded by its owner. Cost: O(1), one cache line written.
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
    uint64_t next;        /* where the next one goes */
    uint64_t overwritten; /* entries that gave way */
};

/* False without host memory. */
bool tn_ring_init(struct tn_ring *ring, uint64_t capacity) TN_MUST_CHECK;

/* References are the owner's to give back first. */
void tn_ring_fini(struct tn_ring *ring);

/* A place for the newest entry. If the ring was full it holds the oldest one, which gives way:
 * *full_out is true then. */
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

/* Copies the newest `count` entries (at most those there are), oldest first; returns how many. */
uint64_t tn_ring_copy(const struct tn_ring *ring, struct tn_ring_entry *entries, uint64_t count);

/* Empty again; `overwritten` stays. */
void tn_ring_clear(struct tn_ring *ring);

#endif
