/* SPDX-License-Identifier: MIT */
#include "analysis/allocated_peak.h"

#include "analysis/block_extent.h"
#include "base/host_mem.h"

/* Adds each block where it is allocated, and takes it away where its free is requested. Sums are
 * modulo 2^64; readers keep all sizes of a file below 2^62 together. Returns the bytes before the
 * first entry. */
static uint64_t deltas_fill(uint64_t *deltas, const struct tn_timeline *timeline,
                            const struct tn_block_extents *extents)
{
    const struct tn_lifetime *lifetimes = tn_timeline_lifetimes(timeline);
    uint64_t before = 0;
    size_t next = 0; /* lifetimes are in the order in which the trace mentions them */

    for (size_t i = 0; i < timeline->lifetimes.count; i++) {
        const struct tn_lifetime *lifetime = &lifetimes[i];
        const uint64_t end = lifetime->requested != TN_NEVER ? lifetime->requested : lifetime->end;
        uint64_t bytes;

        if (lifetime->start == TN_NEVER) {
            bytes = tn_block_extent_of(extents, TN_NEVER, lifetime->address, lifetime->size);
            before += bytes;
        } else {
            bytes = tn_block_extent_next(extents, &next, lifetime->start, lifetime->size);
            deltas[lifetime->start] += bytes;
        }
        if (end != TN_NEVER) {
            deltas[end] -= bytes;
        }
    }
    return before;
}

static struct tn_allocated_peak deltas_peak(const uint64_t *deltas, size_t count, uint64_t before)
{
    int64_t bytes = (int64_t)before;
    int64_t most = bytes;
    uint64_t entry = TN_NEVER;

    for (size_t i = 0; i < count; i++) {
        bytes = (int64_t)((uint64_t)bytes + deltas[i]);
        if (bytes > most) {
            most = bytes;
            entry = i;
        }
    }
    return (struct tn_allocated_peak){.entry = entry, .bytes = (uint64_t)most};
}

static bool peak_find(struct tn_allocated_peak *peak, const struct tn_timeline *timeline,
                      const struct tn_block_extents *extents)
{
    const size_t count = (size_t)timeline->trace->count;
    uint64_t *deltas = tn_host_alloc_zero((count + 1) * sizeof *deltas);

    if (deltas) {
        *peak = deltas_peak(deltas, count, deltas_fill(deltas, timeline, extents));
    }
    tn_host_free(deltas, (count + 1) * sizeof *deltas);
    return deltas != NULL;
}

bool tn_allocated_peak_find(struct tn_allocated_peak *peak, const struct tn_timeline *timeline)
{
    const struct tn_trace_source source = tn_timeline_source(timeline);
    struct tn_block_extents extents;

    if (timeline->extents) {
        return peak_find(peak, timeline, timeline->extents);
    }
    if (!tn_block_extents_init(&extents, &source)) {
        return false;
    }
    const bool good = peak_find(peak, timeline, &extents);

    tn_block_extents_fini(&extents);
    return good;
}
