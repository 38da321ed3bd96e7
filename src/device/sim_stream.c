/* SPDX-License-Identifier: MIT */
#include "device/sim_stream.h"

#include "base/assertion.h"
#include "base/checked.h"
#include "base/host_mem.h"

#include <string.h>

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return tn_add_u64(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t later_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct tn_sim_stream *stream_of(const struct tn_tree_node *node)
{
    return TN_TREE_ENTRY(node, struct tn_sim_stream, node);
}

static int stream_compare(const struct tn_tree_node *a, const struct tn_tree_node *b)
{
    return tn_tree_order_u64(stream_of(a)->handle, stream_of(b)->handle);
}

/* Destroying a hold releases the hold that it waits for. */
static void hold_release(struct tn_sim_hold *hold)
{
    while (hold) {
        struct tn_sim_hold *waited_for = hold->until.hold;

        tn_assert(hold->refs > 0);
        if (--hold->refs > 0) {
            return;
        }
        tn_host_free(hold, sizeof *hold);
        hold = waited_for;
    }
}

void tn_sim_streams_init(struct tn_sim_streams *streams, bool manual)
{
    memset(streams, 0, sizeof *streams);
    tn_tree_init(&streams->streams, stream_compare, NULL);
    streams->manual = manual;
}

static void stream_destroy(struct tn_sim_streams *streams, struct tn_sim_stream *stream)
{
    while (stream->first_hold) {
        struct tn_sim_hold *hold = stream->first_hold;

        stream->first_hold = hold->next;
        hold_release(hold);
    }
    tn_sim_mark_clear(&stream->mark);
    tn_tree_remove(&streams->streams, &stream->node);
    tn_host_free(stream, sizeof *stream);
}

void tn_sim_streams_fini(struct tn_sim_streams *streams)
{
    for (size_t i = 0; i < streams->event_count; i++) {
        tn_sim_point_clear(&streams->event[i].point);
        tn_sim_mark_clear(&streams->event[i].mark);
    }
    tn_sim_graphs_fini(&streams->graphs);
    tn_host_free(streams->event, streams->event_slots * sizeof *streams->event);
    while (streams->streams.root) {
        stream_destroy(streams, stream_of(streams->streams.root));
    }
}

struct tn_sim_stream *tn_sim_stream_find(const struct tn_sim_streams *streams, tarn_stream handle)
{
    const struct tn_sim_stream key = {.handle = handle};
    const struct tn_tree_node *node = tn_tree_find(&streams->streams, &key.node);

    return node ? stream_of(node) : NULL;
}

struct tn_sim_stream *tn_sim_stream_get(struct tn_sim_streams *streams, tarn_stream handle)
{
    struct tn_sim_stream *stream = tn_sim_stream_find(streams, handle);

    if (stream) {
        return stream;
    }
    stream = tn_host_alloc_zero(sizeof *stream);
    if (stream) {
        stream->handle = handle;
        tn_tree_insert(&streams->streams, &stream->node);
    }
    return stream;
}

/* Handles that cannot collide with user streams, which are small numbers or pointers. */
#define MADE_HANDLES ((tarn_stream)0x7a << 56)

struct tn_sim_stream *tn_sim_stream_create(struct tn_sim_streams *streams)
{
    struct tn_sim_stream *stream =
        tn_sim_stream_get(streams, MADE_HANDLES + streams->streams_made + 1);

    if (stream) {
        streams->streams_made++;
        streams->live_streams++;
        stream->created = true;
    }
    return stream;
}

bool tn_sim_stream_destroy(struct tn_sim_streams *streams, tarn_stream handle)
{
    struct tn_sim_stream *stream = tn_sim_stream_find(streams, handle);

    if (!stream || !stream->created) {
        return false;
    }
    stream->created = false;
    streams->live_streams--;
    return true;
}

enum tarn_status tn_sim_stream_enqueue(const struct tn_sim_streams *streams,
                                       struct tn_sim_stream *stream, uint64_t ns)
{
    if (stream->mark.capture) {
        return tn_sim_graph_add(&streams->graphs, &stream->mark);
    }
    if (stream->last_hold) {
        stream->last_hold->behind_ns = add_capped(stream->last_hold->behind_ns, ns);
    } else {
        stream->ready_ns = add_capped(later_of(stream->ready_ns, streams->now_ns), ns);
    }
    return TARN_OK;
}

/* Appends an open hold to the stream; NULL when host memory runs out. */
static struct tn_sim_hold *stream_hold(struct tn_sim_stream *stream)
{
    struct tn_sim_hold *hold = tn_host_alloc_zero(sizeof *hold);

    if (!hold) {
        return NULL;
    }
    hold->refs = 1;
    hold->stream = stream;
    if (stream->last_hold) {
        stream->last_hold->next = hold;
    } else {
        stream->first_hold = hold;
    }
    stream->last_hold = hold;
    return hold;
}

enum tarn_status tn_sim_stream_block(const struct tn_sim_streams *streams,
                                     struct tn_sim_stream *stream)
{
    if (stream->mark.capture) {
        return tn_sim_graph_add(&streams->graphs, &stream->mark);
    }
    return stream_hold(stream) ? TARN_OK : TARN_ERR_HOST_MEMORY;
}

/* When the work before the point is done; its hold, if any, must have ended. */
static uint64_t point_time(const struct tn_sim_point *point)
{
    return point->hold ? add_capped(point->hold->end_ns, point->ns) : point->ns;
}

static bool point_is_known(const struct tn_sim_point *point)
{
    return !point->hold || point->hold->ended;
}

/* Ends the stream's oldest hold. */
static void stream_end_hold(struct tn_sim_streams *streams, struct tn_sim_stream *stream)
{
    struct tn_sim_hold *hold = stream->first_hold;

    tn_assert(hold->may_end && point_is_known(&hold->until));
    hold->ended = true;
    hold->end_ns = later_of(stream->ready_ns, point_time(&hold->until));
    stream->ready_ns = add_capped(hold->end_ns, hold->behind_ns);
    tn_sim_point_clear(&hold->until);
    stream->first_hold = hold->next;
    if (!hold->next) {
        stream->last_hold = NULL;
    }
    hold->next = NULL;
    hold_release(hold);
    streams->open_waits--;
}

/* Ends the holds of the stream that can end now; true if there were any. */
static bool stream_settle(struct tn_sim_streams *streams, struct tn_sim_stream *stream)
{
    bool progress = false;

    while (stream->first_hold && stream->first_hold->may_end &&
           point_is_known(&stream->first_hold->until)) {
        stream_end_hold(streams, stream);
        progress = true;
    }
    return progress;
}

/* The same for all streams: the end of one hold can be what another stream waits for. */
static void streams_settle(struct tn_sim_streams *streams)
{
    bool progress = true;

    while (progress && streams->open_waits > 0) {
        progress = false;
        for (struct tn_tree_node *node = tn_tree_first(&streams->streams); node;
             node = tn_tree_next(node)) {
            progress = stream_settle(streams, stream_of(node)) || progress;
        }
    }
}

static void hold_tell(struct tn_sim_streams *streams, struct tn_sim_hold *hold,
                      struct tn_sim_point until)
{
    hold->may_end = true;
    hold->until = until;
    streams->open_waits++;
}

enum tarn_status tn_sim_stream_unblock(struct tn_sim_streams *streams, struct tn_sim_stream *stream)
{
    struct tn_sim_hold *hold = stream->first_hold;

    while (hold && hold->may_end) {
        hold = hold->next;
    }
    if (!hold) {
        return TARN_ERR_STATE;
    }
    hold_tell(streams, hold, (struct tn_sim_point){.ns = streams->now_ns});
    streams_settle(streams);
    return TARN_OK;
}

/* Makes the stream's oldest hold end, by ending the blocking work at the end of its chain. */
static void stream_force_unblock(struct tn_sim_streams *streams, struct tn_sim_stream *stream)
{
    struct tn_sim_hold *hold = stream->first_hold;

    while (tn_always(hold) && hold->may_end) {
        const struct tn_sim_hold *cause = hold->until.hold;

        tn_assert(cause);
        hold = cause->stream->first_hold;
    }
    if (tn_always(hold)) { /* a chain of holds ends with blocking work */
        hold_tell(streams, hold, (struct tn_sim_point){.ns = streams->now_ns});
    }
    streams_settle(streams);
    streams->forced_unblocks++;
}

void tn_sim_stream_wait(struct tn_sim_streams *streams, struct tn_sim_stream *stream)
{
    while (stream->first_hold) {
        stream_force_unblock(streams, stream);
    }
    streams->now_ns = later_of(streams->now_ns, stream->ready_ns);
    stream->events_waited = stream->events_recorded;
}

void tn_sim_streams_wait(struct tn_sim_streams *streams)
{
    for (struct tn_tree_node *node = tn_tree_first(&streams->streams); node;
         node = tn_tree_next(node)) {
        tn_sim_stream_wait(streams, stream_of(node));
    }
}

struct tn_sim_point tn_sim_point_take(const struct tn_sim_streams *streams,
                                      struct tn_sim_stream *stream)
{
    struct tn_sim_hold *hold = stream->last_hold;

    if (!hold) {
        return (struct tn_sim_point){.ns = later_of(stream->ready_ns, streams->now_ns)};
    }
    hold->refs++;
    return (struct tn_sim_point){.hold = hold, .ns = hold->behind_ns};
}

struct tn_sim_point tn_sim_point_copy(const struct tn_sim_point *point)
{
    if (point->hold) {
        point->hold->refs++;
    }
    return *point;
}

void tn_sim_point_clear(struct tn_sim_point *point)
{
    if (point->hold) {
        hold_release(point->hold);
    }
    *point = (struct tn_sim_point){0};
}

bool tn_sim_point_reached(const struct tn_sim_streams *streams, const struct tn_sim_point *point)
{
    return point_is_known(point) && point_time(point) <= streams->now_ns;
}

/* Names are the use count of a slot above its number + 1. */
static struct tn_sim_event *event_find(const struct tn_sim_streams *streams, uint64_t event)
{
    const uint64_t slot = (event & UINT32_MAX) - 1;

    if ((event & UINT32_MAX) == 0 || slot >= streams->event_count) {
        return NULL;
    }
    struct tn_sim_event *found = &streams->event[slot];
    return found->live && found->uses == event >> 32 ? found : NULL;
}

static enum tarn_status events_grow(struct tn_sim_streams *streams)
{
    const size_t slots = streams->event_slots ? streams->event_slots * 2 : 64;

    if (slots > UINT32_MAX / 2) {
        return TARN_ERR_LIMIT;
    }
    struct tn_sim_event *event =
        tn_host_resize(streams->event, streams->event_slots * sizeof *event, slots * sizeof *event);
    if (!event) {
        return TARN_ERR_HOST_MEMORY;
    }
    streams->event = event;
    streams->event_slots = slots;
    return TARN_OK;
}

enum tarn_status tn_sim_event_create(struct tn_sim_streams *streams, uint64_t *event_out)
{
    uint32_t number = streams->first_free;

    if (number != 0) {
        streams->first_free = streams->event[number - 1].next_free;
    } else {
        if (streams->event_count == streams->event_slots) {
            const enum tarn_status st = events_grow(streams);

            if (st != TARN_OK) {
                return st;
            }
        }
        number = (uint32_t)++streams->event_count;
        streams->event[number - 1].uses = 0;
    }
    struct tn_sim_event *event = &streams->event[number - 1];
    *event = (struct tn_sim_event){.live = true, .uses = event->uses + 1};
    streams->live_events++;
    *event_out = (uint64_t)event->uses << 32 | number;
    return TARN_OK;
}

enum tarn_status tn_sim_event_destroy(struct tn_sim_streams *streams, uint64_t event)
{
    struct tn_sim_event *found = event_find(streams, event);

    if (!found) {
        return TARN_ERR_NOT_FOUND;
    }
    tn_sim_point_clear(&found->point);
    tn_sim_mark_clear(&found->mark);
    found->live = false;
    found->next_free = streams->first_free;
    streams->first_free = (uint32_t)(event & UINT32_MAX);
    streams->live_events--;
    return TARN_OK;
}

enum tarn_status tn_sim_event_record(struct tn_sim_streams *streams, uint64_t event,
                                     struct tn_sim_stream *stream)
{
    struct tn_sim_event *found = event_find(streams, event);

    if (!found) {
        return TARN_ERR_NOT_FOUND;
    }
    const enum tarn_status st = tn_sim_mark_copy(&found->mark, &stream->mark);

    if (st) {
        return st;
    }
    tn_sim_point_clear(&found->point);
    found->point = tn_sim_point_take(streams, stream);
    found->stream = stream;
    found->number = ++stream->events_recorded;
    found->completed = false;
    return TARN_OK;
}

static bool event_is_done(const struct tn_sim_streams *streams, const struct tn_sim_event *event)
{
    if (!event->stream || event->completed || event->number <= event->stream->events_waited) {
        return true;
    }
    return !streams->manual && tn_sim_point_reached(streams, &event->point);
}

enum tarn_status tn_sim_event_query(struct tn_sim_streams *streams, uint64_t event)
{
    struct tn_sim_event *found = event_find(streams, event);

    if (!found) {
        return TARN_ERR_NOT_FOUND;
    }
    if (event_is_done(streams, found)) {
        return TARN_OK;
    }
    if (streams->oracle && streams->oracle(streams->oracle_context, event, found->stream->handle)) {
        found->completed = true;
        return TARN_OK;
    }
    return TARN_ERR_NOT_READY;
}

enum tarn_status tn_sim_event_wait(struct tn_sim_streams *streams, uint64_t event)
{
    struct tn_sim_event *found = event_find(streams, event);

    if (!found) {
        return TARN_ERR_NOT_FOUND;
    }
    if (event_is_done(streams, found)) {
        return TARN_OK;
    }
    while (found->point.hold && !found->point.hold->ended) {
        stream_force_unblock(streams, found->stream);
    }
    streams->now_ns = later_of(streams->now_ns, point_time(&found->point));
    found->stream->events_waited = later_of(found->stream->events_waited, found->number);
    return TARN_OK;
}

/* Makes later work on the stream depend on a point of `other`. */
static enum tarn_status stream_wait_for(struct tn_sim_streams *streams,
                                        struct tn_sim_stream *stream,
                                        const struct tn_sim_stream *other,
                                        const struct tn_sim_point *point,
                                        const struct tn_sim_mark *mark)
{
    if (stream->mark.capture || tn_sim_graph_find(&streams->graphs, mark->capture)) {
        return tn_sim_mark_join(&stream->mark, mark);
    }
    if (other == stream || tn_sim_point_reached(streams, point)) {
        return TARN_OK;
    }
    if (!stream->first_hold && point_is_known(point)) {
        stream->ready_ns = later_of(stream->ready_ns, point_time(point));
        return TARN_OK;
    }
    struct tn_sim_hold *hold = stream_hold(stream);
    if (!hold) {
        return TARN_ERR_HOST_MEMORY;
    }
    hold_tell(streams, hold, tn_sim_point_copy(point));
    return TARN_OK;
}

enum tarn_status tn_sim_stream_wait_event(struct tn_sim_streams *streams,
                                          struct tn_sim_stream *stream, uint64_t event)
{
    const struct tn_sim_event *found = event_find(streams, event);

    if (!found) {
        return TARN_ERR_NOT_FOUND;
    }
    if (!found->stream) {
        return TARN_OK;
    }
    return stream_wait_for(streams, stream, found->stream, &found->point, &found->mark);
}

enum tarn_status tn_sim_stream_join(struct tn_sim_streams *streams, struct tn_sim_stream *stream,
                                    struct tn_sim_stream *other)
{
    if (stream == other) {
        return TARN_OK;
    }
    struct tn_sim_point point = tn_sim_point_take(streams, other);
    const enum tarn_status st = stream_wait_for(streams, stream, other, &point, &other->mark);

    tn_sim_point_clear(&point);
    return st;
}

enum tarn_status tn_sim_stream_begin_capture(struct tn_sim_streams *streams,
                                             struct tn_sim_stream *stream)
{
    return stream->mark.capture
               ? TARN_OK
               : tn_sim_graph_begin(&streams->graphs, stream->handle, &stream->mark);
}

void tn_sim_stream_end_capture(struct tn_sim_streams *streams, struct tn_sim_stream *stream)
{
    const uint64_t capture = stream->mark.capture;
    const struct tn_sim_graph *graph = tn_sim_graph_find(&streams->graphs, capture);

    if (!graph || graph->origin != stream->handle) {
        tn_sim_mark_clear(&stream->mark);
        return;
    }
    for (struct tn_tree_node *node = tn_tree_first(&streams->streams); node;
         node = tn_tree_next(node)) {
        if (stream_of(node)->mark.capture == capture) {
            tn_sim_mark_clear(&stream_of(node)->mark);
        }
    }
    tn_sim_graph_end(&streams->graphs, capture);
}

enum tarn_status tn_sim_event_complete(struct tn_sim_streams *streams, uint64_t event)
{
    struct tn_sim_event *found = event_find(streams, event);

    if (!found || !found->stream) {
        return TARN_ERR_NOT_FOUND;
    }
    found->completed = true;
    return TARN_OK;
}

void tn_sim_streams_check(const struct tn_sim_streams *streams, struct tarn_findings *findings)
{
    tn_sim_graphs_check(&streams->graphs, findings);
    for (const struct tn_tree_node *node = tn_tree_first(&streams->streams); node;
         node = tn_tree_next(node)) {
        tn_sim_mark_check(&streams->graphs, &stream_of(node)->mark, findings);
    }
}
