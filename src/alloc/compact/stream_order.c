/* SPDX-License-Identifier: MIT */
#include "alloc/compact/stream_order.h"

#include <string.h>

void tn_stream_order_init(struct tn_stream_order *order, struct tn_heap *heap)
{
    *order = (struct tn_stream_order){.heap = heap};
    tn_vec_init(&order->streams, sizeof(struct tn_order_stream));
    tn_vec_init(&order->events, sizeof(tn_event_handle));
}

static void event_destroy(const struct tn_stream_order *order, tn_event_handle event)
{
    struct tarn_device *device = order->heap->device;

    (void)device->ops->event_destroy(device, event);
}

void tn_stream_order_fini(struct tn_stream_order *order)
{
    const tn_event_handle *events = order->events.items;
    const struct tn_order_stream *streams = order->streams.items;

    for (size_t i = 0; i < order->streams.count; i++) {
        for (unsigned k = 0; k < streams[i].count; k++) {
            event_destroy(order, streams[i].marks[k].event);
        }
    }
    for (size_t i = 0; i < order->events.count; i++) {
        event_destroy(order, events[i]);
    }
    tn_vec_fini(&order->streams);
    tn_vec_fini(&order->events);
}

static enum tarn_status event_take(struct tn_stream_order *order, tn_event_handle *event_out)
{
    const tn_event_handle *events = order->events.items;
    struct tarn_device *device = order->heap->device;

    if (order->events.count == 0) {
        return device->ops->event_create(device, event_out);
    }
    *event_out = events[--order->events.count];
    return TARN_OK;
}

void tn_order_give(struct tn_stream_order *order, tn_event_handle event)
{
    if (!tn_vec_add(&order->events, &event)) {
        event_destroy(order, event);
    }
}

enum tarn_status tn_order_record(struct tn_stream_order *order, tarn_stream stream,
                                 tn_event_handle *event_out, struct tarn_error *error)
{
    struct tarn_device *device = order->heap->device;
    enum tarn_status st = event_take(order, event_out);

    if (st) {
        return tn_heap_device_failed(order->heap, st, "creating an event", error);
    }
    st = device->ops->event_record(device, *event_out, stream);
    if (st) {
        tn_order_give(order, *event_out);
        return tn_heap_device_failed(order->heap, st, "recording an event", error);
    }
    return TARN_OK;
}

enum tarn_status tn_order_after(const struct tn_stream_order *order, tarn_stream stream,
                                tn_event_handle event, struct tarn_error *error)
{
    struct tarn_device *device = order->heap->device;
    const enum tarn_status st = device->ops->stream_wait_event(device, stream, event);

    return st ? tn_heap_device_failed(order->heap, st, "ordering streams", error) : TARN_OK;
}

enum tarn_status tn_order_wait(struct tn_stream_order *order, tarn_stream stream, tarn_stream other,
                               struct tarn_error *error)
{
    tn_event_handle event = 0;
    enum tarn_status st = tn_order_record(order, other, &event, error);

    if (st == TARN_OK) {
        st = tn_order_after(order, stream, event, error);
        tn_order_give(order, event);
    }
    return st;
}

/* Index of the first stream that is not below this one. */
static size_t stream_index(const struct tn_stream_order *order, tarn_stream stream)
{
    const struct tn_order_stream *streams = order->streams.items;
    size_t low = 0;
    size_t high = order->streams.count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (streams[middle].stream < stream) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static struct tn_order_stream *stream_find(const struct tn_stream_order *order, tarn_stream stream)
{
    struct tn_order_stream *streams = order->streams.items;
    const size_t index = stream_index(order, stream);

    return index < order->streams.count && streams[index].stream == stream ? &streams[index] : NULL;
}

int64_t tn_order_done(const struct tn_stream_order *order, tarn_stream stream)
{
    const struct tn_order_stream *found = stream_find(order, stream);

    return found ? found->done : -1;
}

int64_t tn_order_marked(const struct tn_stream_order *order, tarn_stream stream)
{
    const struct tn_order_stream *found = stream_find(order, stream);

    if (!found) {
        return -1;
    }
    return found->count > 0 ? found->marks[found->count - 1].epoch : found->done;
}

static void drop_oldest_mark(struct tn_stream_order *order, struct tn_order_stream *stream)
{
    stream->done = stream->marks[0].epoch;
    tn_order_give(order, stream->marks[0].event);
    stream->count--;
    for (unsigned i = 0; i < stream->count; i++) {
        stream->marks[i] = stream->marks[i + 1];
    }
}

int64_t tn_order_poll(struct tn_stream_order *order, tarn_stream stream)
{
    struct tarn_device *device = order->heap->device;
    struct tn_order_stream *found = stream_find(order, stream);

    if (!found) {
        return -1;
    }
    while (found->count > 0 && device->ops->event_query(device, found->marks[0].event) == TARN_OK) {
        drop_oldest_mark(order, found);
    }
    return found->done;
}

/* Blocks that go into a free set from now on belong to the next epoch. */
static void epoch_end(struct tn_stream_order *order)
{
    struct tn_private_pools *pools = &order->heap->private_pools;

    order->epoch++;
    order->heap->small.find_count = order->epoch;
    order->heap->large.find_count = order->epoch;
    pools->find_count = order->epoch;
    for (struct tn_private_pool *p = pools->first; p; p = p->next) {
        p->small.find_count = order->epoch;
        p->large.find_count = order->epoch;
    }
}

static struct tn_order_stream *stream_add(struct tn_stream_order *order, tarn_stream stream)
{
    const size_t index = stream_index(order, stream);
    const size_t above = order->streams.count - index;

    if (!tn_vec_push(&order->streams)) {
        return NULL;
    }
    struct tn_order_stream *added = (struct tn_order_stream *)order->streams.items + index;

    memmove(added + 1, added, above * sizeof *added);
    *added = (struct tn_order_stream){.stream = stream, .done = -1};
    return added;
}

bool tn_order_add(struct tn_stream_order *order, tarn_stream stream)
{
    return stream_find(order, stream) || stream_add(order, stream);
}

void tn_order_taken(struct tn_stream_order *order, tarn_stream stream)
{
    struct tn_order_stream *found = stream_find(order, stream);

    if (found) { /* one without a mark had nothing that was known to be done */
        found->was_taken_from = true;
        order->is_shared = true;
    }
}

void tn_order_needs(struct tn_stream_order *order, tarn_stream stream)
{
    struct tn_order_stream *found = stream_find(order, stream);

    if (found) {
        found->takes_turns = found->was_taken_from;
    }
}

bool tn_order_takes_turns(const struct tn_stream_order *order, tarn_stream stream)
{
    const struct tn_order_stream *found = stream_find(order, stream);

    return found && found->takes_turns;
}

void tn_order_mark(struct tn_stream_order *order, tarn_stream stream)
{
    struct tn_order_stream *found = stream_find(order, stream);
    struct tn_order_mark mark = {.epoch = order->epoch};

    found = found ? found : stream_add(order, stream);
    if (found && found->count < TN_ORDER_MARKS &&
        tn_order_record(order, stream, &mark.event, NULL) == TARN_OK) {
        found->marks[found->count++] = mark;
        epoch_end(order);
    }
}
