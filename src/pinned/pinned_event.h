/* SPDX-License-Identifier: MIT */
/*
 * A queue of the events of waiting blocks in the order of the frees, and a list of spare events to
 * reuse. A record is in the queue, in the spare list, or owned by the function that created or took
 * it.
 *
 * Owns: the records and the events. Guarded by the allocator's lock. Recording and querying happen
 * without it, on records that are in no list.
 */
#ifndef TN_PINNED_PINNED_EVENT_H
#define TN_PINNED_PINNED_EVENT_H

#include "base/attr.h"
#include "device/device_ops.h"

struct tn_pinned_block;

struct tn_pinned_event {
    struct tn_pinned_event *next;
    struct tarn_device *device; /* device of the event */
    tn_event_handle event;
    struct tn_pinned_block *block; /* block that waits for it */
};

/* All zero is empty. */
struct tn_pinned_events {
    struct tn_pinned_event *first; /* queue, oldest first */
    struct tn_pinned_event *last;
    struct tn_pinned_event *spare;
    uint64_t count; /* in the queue */
};

/* Destroys all of them, queued ones included. */
void tn_pinned_events_fini(struct tn_pinned_events *events);

/* A spare record of that device; NULL when there is none. */
struct tn_pinned_event *tn_pinned_events_take_spare(struct tn_pinned_events *events,
                                                    const struct tarn_device *device);
void tn_pinned_events_put_spare(struct tn_pinned_events *events, struct tn_pinned_event *event);

/* A new record; without the lock. */
enum tarn_status tn_pinned_event_create(struct tarn_device *device,
                                        struct tn_pinned_event **event_out) TN_MUST_CHECK;

/* Append to and prepend to the queue. */
void tn_pinned_events_push(struct tn_pinned_events *events, struct tn_pinned_event *event);
void tn_pinned_events_push_front(struct tn_pinned_events *events, struct tn_pinned_event *event);

/* Removes the oldest; NULL when the queue is empty. */
struct tn_pinned_event *tn_pinned_events_pop(struct tn_pinned_events *events);

#endif
