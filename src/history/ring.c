/* SPDX-License-Identifier: MIT */
#include "history/ring.h"

#include "base/assertion.h"
#include "base/checked.h"
#include "base/host_mem.h"

#include <string.h>

bool tn_ring_init(struct tn_ring *ring, uint64_t capacity)
{
    uint64_t bytes;

    *ring = (struct tn_ring){.capacity = capacity};
    if (!tn_mul_u64(capacity, sizeof *ring->entries, &bytes)) {
        return false;
    }
    ring->entries = tn_host_alloc(bytes);
    return ring->entries != NULL;
}

void tn_ring_fini(struct tn_ring *ring)
{
    tn_host_free(ring->entries, ring->capacity * sizeof *ring->entries);
    *ring = (struct tn_ring){0};
}

/* Index of the oldest of the newest `count` entries. */
static uint64_t ring_begin(const struct tn_ring *ring, uint64_t count)
{
    return ring->next >= count ? ring->next - count : ring->next + ring->capacity - count;
}

struct tn_ring_entry *tn_ring_at(const struct tn_ring *ring, uint64_t index)
{
    tn_assert(index < ring->count);
    const uint64_t at = ring_begin(ring, ring->count) + index;

    return &ring->entries[at < ring->capacity ? at : at - ring->capacity];
}

void tn_ring_copy_range(const struct tn_ring *ring, uint64_t index, uint64_t count,
                        struct tn_ring_entry *entries)
{
    if (count == 0) {
        return;
    }
    tn_assert(index < ring->count && count <= ring->count - index);
    const uint64_t begin = (uint64_t)(tn_ring_at(ring, index) - ring->entries);
    const uint64_t upper = ring->capacity - begin;
    const uint64_t first = count < upper ? count : upper;

    memcpy(entries, ring->entries + begin, first * sizeof *entries);
    memcpy(entries + first, ring->entries, (count - first) * sizeof *entries);
}

uint64_t tn_ring_copy(const struct tn_ring *ring, struct tn_ring_entry *entries, uint64_t count)
{
    const uint64_t wanted = count < ring->count ? count : ring->count;

    tn_ring_copy_range(ring, ring->count - wanted, wanted, entries);
    return wanted;
}

void tn_ring_clear(struct tn_ring *ring)
{
    ring->count = 0;
    ring->next = 0;
}
