/* SPDX-License-Identifier: MIT */
/*
 * Who receives events. A sink is two functions and a pointer. `capture` runs before the allocator's
 * lock is taken and may look at the calling thread's stack; it hands back an id that the allocator
 * keeps with the block and puts into events. `receive` runs under the allocator's lock, in the
 * order in which things happened; it may only copy, and must not call the allocator.
 */
#ifndef TN_HISTORY_SINK_H
#define TN_HISTORY_SINK_H

#include "history/event.h"

/* How much context is wanted, as PyTorch's RecordContext: each level includes those before it. */
enum tn_context_level {
    TN_CONTEXT_NEVER,
    TN_CONTEXT_STATE, /* stacks of live blocks and segments */
    TN_CONTEXT_ALLOC, /* and stacks in the events of allocations */
    TN_CONTEXT_ALL    /* and stacks of frees */
};

struct tn_sink {
    void *context;
    enum tn_context_level level; /* `capture` is called for levels up to this one */
    uint64_t (*capture)(void *context, enum tn_context_level level); /* may be NULL */
    void (*receive)(void *context, const struct tn_event *event);
};

#endif
