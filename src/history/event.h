/* SPDX-License-Identifier: MIT */
/*
 * What an allocator reports: one plain record an event. The actions, their order and what each
 * field means in each of them are those of PyTorch's trace entries.
 */
#ifndef TN_HISTORY_EVENT_H
#define TN_HISTORY_EVENT_H

#include "tarn/base.h"

/* enumerator, name in files */
#define TN_ACTION_MAP(X)                                                                           \
    X(ALLOC, "alloc")                                                                              \
    X(FREE_REQUESTED, "free_requested")                                                            \
    X(FREE_COMPLETED, "free_completed")                                                            \
    X(SEGMENT_ALLOC, "segment_alloc")                                                              \
    X(SEGMENT_FREE, "segment_free")                                                                \
    X(SEGMENT_MAP, "segment_map")                                                                  \
    X(SEGMENT_UNMAP, "segment_unmap")                                                              \
    X(SNAPSHOT, "snapshot")                                                                        \
    X(OOM, "oom")                                                                                  \
    X(ANNOTATE, "annotate")

enum tn_action {
#define TN_ACTION_ENUM(name, text) TN_ACTION_##name,
    TN_ACTION_MAP(TN_ACTION_ENUM)
#undef TN_ACTION_ENUM
    TN_ACTION_COUNT
};

struct tn_event {
    enum tn_action action;
    int device;          /* ordinal */
    uint64_t address;    /* of the block or range; device's free bytes for OOM; 0 for SNAPSHOT */
    uint64_t size;       /* requested bytes of a block, real bytes of a segment, rounded request for
                           OOM, active bytes for SNAPSHOT */
    tarn_stream stream;  /* the block's stream */
    uint64_t pool_id[2]; /* {0, 0} is the default pool */
    uint64_t stack;      /* id from the sink's `capture`, 0 = none */
};

/* Name of an action in files, e.g. "segment_alloc". Static storage. */
const char *tn_action_name(enum tn_action action);

#endif
