/* SPDX-License-Identifier: MIT */
/*
 * One trace and the segments that the snapshot has at its end: of a device, or of pinned memory.
 * Its state is reconstructed from there backwards.
 */
#ifndef TN_ANALYSIS_TRACE_SOURCE_H
#define TN_ANALYSIS_TRACE_SOURCE_H

#include "base/vec.h"
#include "snapshot/model.h"

#define TN_NEVER UINT64_MAX /* instead of the number of an entry */

/* An entry by which the allocator takes memory from the device, or gives it back. They are few, so
 * that who follows the reserved bytes need not look at every entry. */
struct tn_memory_change {
    uint64_t entry;
    uint64_t bytes; /* that it adds, modulo 2^64; possibly 0 */
};

struct tn_trace_source {
    const struct tn_model *model;
    const struct tn_trace *trace; /* never NULL; empty when the file has none */
    const struct tn_model_segment *segments;
    size_t segment_count; /* of all devices */
    int32_t device;
    bool is_host;
    const struct tn_vec
        *memory;            /* struct tn_memory_change: all of the trace; NULL: not collected */
    uint64_t request_limit; /* no allocation or free in the trace has so many bytes; 0: not known */
};

/* A device without a trace is as after its last event. */
static inline struct tn_trace_source tn_source_of_device(const struct tn_model *model,
                                                         size_t device)
{
    static const struct tn_trace none = {0};

    return (struct tn_trace_source){.model = model,
                                    .trace = device < model->trace_count ? &model->traces[device]
                                                                         : &none,
                                    .segments = model->segments,
                                    .segment_count = model->segment_count,
                                    .device = (int32_t)device};
}

static inline bool tn_source_has(const struct tn_trace_source *source, size_t segment)
{
    return source->segments[segment].device == source->device;
}

static inline const struct tn_trace_entry *tn_source_entry(const struct tn_trace_source *source,
                                                           uint64_t entry)
{
    return tn_trace_at(source->model, source->trace, entry);
}

/* Bytes that an entry adds to the segments of its device; negative when it takes away. */
static inline int64_t tn_reserved_delta(const struct tn_trace_entry *entry)
{
    if (tn_trace_takes(entry)) {
        return (int64_t)entry->size;
    }
    return tn_trace_gives_back(entry) ? -(int64_t)entry->size : 0;
}

/* Reserved bytes after so many more or less. More taken away than is there counts as nothing left.
 * Readers keep all sizes of a file below 2^62 together. */
static inline uint64_t tn_reserved_after(uint64_t reserved, int64_t delta)
{
    const uint64_t after = reserved + (uint64_t)delta;

    return (int64_t)after < 0 ? 0 : after;
}

/* Bytes reserved right before entry `first`, by the sizes in the trace. Cost: O(entries), or
 * O(changes of memory) where these are collected. */
static inline uint64_t tn_source_reserved_before(const struct tn_trace_source *source,
                                                 uint64_t first)
{
    uint64_t reserved = 0;

    for (size_t i = 0; i < source->segment_count; i++) {
        reserved += tn_source_has(source, i) ? source->segments[i].total_size : 0;
    }
    if (source->memory) {
        const struct tn_memory_change *changes = source->memory->items;

        for (size_t i = source->memory->count; i > 0 && changes[i - 1].entry >= first; i--) {
            reserved = tn_reserved_after(reserved, -(int64_t)changes[i - 1].bytes);
        }
        return reserved;
    }
    for (uint64_t i = source->trace->count; i > first; i--) {
        reserved = tn_reserved_after(reserved, -tn_reserved_delta(tn_source_entry(source, i - 1)));
    }
    return reserved;
}

#endif
