/* SPDX-License-Identifier: MIT */
/* What the public handle is, for the rooms that may look inside (capture, replay). */
#ifndef TN_ALLOC_ALLOCATOR_H
#define TN_ALLOC_ALLOCATOR_H

#include "alloc/engine.h"
#include "tarn/allocator.h"

struct tarn_allocator {
    struct tn_engine engine;
};

/* Adds a receiver of events; at most TN_SINKS_MAX. It stays until the allocator is destroyed. */
enum tarn_status tn_allocator_add_sink(struct tarn_allocator *allocator,
                                       const struct tn_sink *sink) TN_MUST_CHECK;

/* Sends the event that a snapshot leaves in the history. */
void tn_allocator_mark_snapshot(struct tarn_allocator *allocator);

#endif
