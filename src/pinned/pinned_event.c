/* SPDX-License-Identifier: MIT */
#include "pinned/pinned_event.h"

#include "base/host_mem.h"

static void event_destroy(struct tn_pinned_event *event)
{
    (void)event->device->ops->event_destroy(event->device, event->event);
    tn_host_free(event, sizeof *event);
}

static void list_destroy(struct tn_pinned_event *event)
{
    while (event) {
        struct tn_pinned_event *next = event->next;

        event_destroy(event);
        event = next;
    }
}

void tn_pinned_events_fini(struct tn_pinned_events *events)
{
    list_destroy(events->first);
    list_destroy(events->spare);
    *events = (struct tn_pinned_events){0};
}

struct tn_pinned_event *tn_pinned_events_take_spare(struct tn_pinned_events *events,
                                                    const struct tarn_device *device)
{
    for (struct tn_pinned_event **link = &events->spare; *link; link = &(*link)->next) {
        struct tn_pinned_event *event = *link;

        if (event->device == device) {
            *link = event->next;
            return event;
        }
    }
    return NULL;
}

void tn_pinned_events_put_spare(struct tn_pinned_events *events, struct tn_pinned_event *event)
{
    event->block = NULL;
    event->next = events->spare;
    events->spare = event;
}

enum tarn_status tn_pinned_event_create(struct tarn_device *device,
                                        struct tn_pinned_event **event_out)
{
    struct tn_pinned_event *event = tn_host_alloc_zero(sizeof *event);

    if (!event) {
        return TARN_ERR_HOST_MEMORY;
    }
    event->device = device;
    const enum tarn_status st = device->ops->event_create(device, &event->event);

    if (st) {
        tn_host_free(event, sizeof *event);
        return st;
    }
    *event_out = event;
    return TARN_OK;
}

void tn_pinned_events_push(struct tn_pinned_events *events, struct tn_pinned_event *event)
{
    event->next = NULL;
    if (events->last) {
        events->last->next = event;
    } else {
        events->first = event;
    }
    events->last = event;
    events->count++;
}

void tn_pinned_events_push_front(struct tn_pinned_events *events, struct tn_pinned_event *event)
{
    event->next = events->first;
    events->first = event;
    events->last = events->last ? events->last : event;
    events->count++;
}

struct tn_pinned_event *tn_pinned_events_pop(struct tn_pinned_events *events)
{
    struct tn_pinned_event *event = events->first;

    if (event) {
        events->first = event->next;
        events->last = events->first ? events->last : NULL;
        events->count--;
    }
    return event;
}
