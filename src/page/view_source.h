/* SPDX-License-Identifier: MIT */
/* What one tab of the page shows: the trace and the segments of a device, or of pinned memory. */
#ifndef TN_PAGE_VIEW_SOURCE_H
#define TN_PAGE_VIEW_SOURCE_H

#include "snapshot/model.h"

struct tn_view_source {
    const struct tn_model *model;
    const struct tn_trace *trace; /* never NULL; empty when the file has none */
    const struct tn_model_segment *segments;
    size_t segment_count; /* of all devices */
    int32_t device;
    bool is_host;
};

/* Bytes that an entry adds to the reserved ones; modulo 2^64 when it takes away. */
static inline uint64_t tn_source_reserves(const struct tn_trace_entry *entry)
{
    if (entry->action == TN_TRACE_SEGMENT_ALLOC || entry->action == TN_TRACE_SEGMENT_MAP) {
        return entry->size;
    }
    if (entry->action == TN_TRACE_SEGMENT_FREE || entry->action == TN_TRACE_SEGMENT_UNMAP) {
        return 0 - entry->size;
    }
    return 0;
}

static inline bool tn_source_has(const struct tn_view_source *source, size_t segment)
{
    return source->segments[segment].device == source->device;
}

/* Whether a segment that an entry gave back was of the large pool: its size tells. Growing segments
 * of the large pool map 20 MiB at a time, the small pool's have 2 MiB. */
static inline bool tn_source_is_large(uint64_t size, bool is_expandable)
{
    return is_expandable ? size % ((uint64_t)20 << 20) == 0 : size > (uint64_t)2 << 20;
}

#endif
