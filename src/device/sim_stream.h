/* SPDX-License-Identifier: MIT */
/*
 * Streams and events of the simulated device on a virtual clock.
 *
 * A stream is a timeline whose work runs in order. Timed work takes a number of nanoseconds; a hold
 * ("blocking work") lasts until it is ended. So a stream consists of the time at which the work
 * before its first open hold is done, and a list of open holds, each with the duration of the work
 * queued between it and the next hold. A point marks a position in a stream: an absolute time if no
 * hold precedes it, otherwise a hold and an offset from that hold's end. Ending a hold does not
 * update the points after it: they query the hold. Streams wait for each other only explicitly;
 * stream 0 is not special.
 *
 * A hold also represents waiting for a point of another stream whose time is not yet known, or
 * waiting after other holds. It ends by itself when it is the first of its stream and the time of
 * its point is known. Blocking work that is ended out of order waits likewise. Holds only ever wait
 * for points after older holds, so that there are no cycles.
 *
 * Events are named points. In manual mode a point's time is ignored: an event completes explicitly,
 * or when it or a later event of its stream has been waited for; a stream that waits for an event
 * still waits for its point. A name contains the use count of its slot, so that names of destroyed
 * events are recognized.
 *
 * A stream can be in a capture (sim_graph.h): work queued on it, blocking work included, becomes a
 * node of the graph and takes no time. An event recorded on it marks its terminals and, as on any
 * stream, a point: after the work queued outside the capture, which is all that host queries and
 * waits consider. A stream that waits for the event joins the capture while that is active.
 *
 * Invariants: a hold is listed in its stream or ended, never both; refs = points that refer to it,
 *   plus one while it is listed.
 * Locks: the device's. Cost: finding a stream is O(log streams), everything else constant; waiting
 *   is linear in the holds ended.
 */
#ifndef TN_DEVICE_SIM_STREAM_H
#define TN_DEVICE_SIM_STREAM_H

#include "base/tree.h"
#include "device/sim_graph.h"
#include "tarn/status.h"

struct tn_sim_hold;

/* A position in a stream. All zero: always reached. */
struct tn_sim_point {
    struct tn_sim_hold *hold; /* counted, or NULL */
    uint64_t ns;              /* absolute, or relative to the end of the hold */
};

/* Blocking work or waiting. Shared by the stream's list and the points after it. */
struct tn_sim_hold {
    struct tn_sim_hold *next;     /* later one of the same stream */
    struct tn_sim_stream *stream; /* its stream */
    uint64_t refs;
    struct tn_sim_point until; /* earliest end, once `may_end` is set */
    uint64_t behind_ns;        /* work queued between this hold and the next one */
    uint64_t end_ns;           /* when it ended; valid once `ended` */
    bool may_end;              /* set for waiting, and by unblocking */
    bool ended;
};

struct tn_sim_stream {
    struct tn_tree_node node;
    tarn_stream handle;
    uint64_t ready_ns; /* when the work before the first open hold is done */
    struct tn_sim_hold *first_hold;
    struct tn_sim_hold *last_hold;
    uint64_t events_recorded; /* numbers events of this stream in order */
    uint64_t events_waited;   /* events up to this number are done: they were waited for */
    struct tn_sim_mark mark;  /* in a capture: its terminals */
    bool created;             /* by tn_sim_stream_create, and not destroyed since */
};

struct tn_sim_event {
    struct tn_sim_point point;
    struct tn_sim_mark mark;      /* recorded in a capture: the stream's terminals then */
    struct tn_sim_stream *stream; /* NULL until recorded */
    uint64_t number;              /* of this recording in its stream, from 1 */
    bool completed;               /* completed explicitly */
    bool live;
    uint32_t uses;      /* how often the slot was used */
    uint32_t next_free; /* slot number + 1 while not live; 0 ends the list */
};

struct tn_sim_streams {
    struct tn_tree streams;
    struct tn_sim_graphs graphs;
    struct tn_sim_event *event; /* `event_slots` slots, the first `event_count` of them ever used */
    size_t event_slots;
    size_t event_count;
    uint32_t first_free;
    uint64_t live_events;
    uint64_t now_ns;
    uint64_t forced_unblocks;
    uint64_t streams_made; /* by tn_sim_stream_create */
    uint64_t live_streams; /* of these */
    uint64_t open_waits;   /* holds with `may_end` set that have not ended */
    bool manual;
    bool (*oracle)(void *context, uint64_t event, tarn_stream stream);
    void *oracle_context;
};

void tn_sim_streams_init(struct tn_sim_streams *streams, bool manual);
void tn_sim_streams_fini(struct tn_sim_streams *streams);

/* The stream of that handle, created if necessary; NULL without host memory. Borrowed until fini.
 * */
struct tn_sim_stream *tn_sim_stream_get(struct tn_sim_streams *streams, tarn_stream handle);

/* Creates a stream with an unused handle; NULL without host memory. Destroying it keeps its record,
 * because points and events may refer to it; false if it was not created this way. */
struct tn_sim_stream *tn_sim_stream_create(struct tn_sim_streams *streams);
bool tn_sim_stream_destroy(struct tn_sim_streams *streams, tarn_stream handle);

/* The stream of that handle; NULL if it was never used. */
struct tn_sim_stream *tn_sim_stream_find(const struct tn_sim_streams *streams, tarn_stream handle);

/* Queues timed work; the total saturates at 2^64 - 1 ns. In a capture: TARN_ERR_HOST_MEMORY,
 * TARN_ERR_LIMIT. */
enum tarn_status tn_sim_stream_enqueue(const struct tn_sim_streams *streams,
                                       struct tn_sim_stream *stream, uint64_t ns);

/* Opens a hold (TARN_ERR_HOST_MEMORY; in a capture TARN_ERR_LIMIT) and ends the oldest one
 * (TARN_ERR_STATE when none is open). */
enum tarn_status tn_sim_stream_block(const struct tn_sim_streams *streams,
                                     struct tn_sim_stream *stream);
enum tarn_status tn_sim_stream_unblock(struct tn_sim_streams *streams,
                                       struct tn_sim_stream *stream);

/* Ends all holds, moves the clock to the end of the stream's work, completes its events. */
void tn_sim_stream_wait(struct tn_sim_streams *streams, struct tn_sim_stream *stream);

/* The same for all streams. */
void tn_sim_streams_wait(struct tn_sim_streams *streams);

/* Work queued on the stream from now on begins when the event's point is reached, immediately for
 * an event that was never recorded. An event of an active capture makes the stream join that.
 * TARN_ERR_NOT_FOUND for a name that is no live event; TARN_ERR_STATE if the stream is in a capture
 * and the event is not; TARN_ERR_HOST_MEMORY. */
enum tarn_status tn_sim_stream_wait_event(struct tn_sim_streams *streams,
                                          struct tn_sim_stream *stream, uint64_t event);

/* The same for the work queued on another stream so far. */
enum tarn_status tn_sim_stream_join(struct tn_sim_streams *streams, struct tn_sim_stream *stream,
                                    struct tn_sim_stream *other);

/* Begins a capture on the stream (TARN_ERR_HOST_MEMORY), unless it is in one. Ends the stream's
 * capture: for every stream in it if it began on this stream, else only for this one. */
enum tarn_status tn_sim_stream_begin_capture(struct tn_sim_streams *streams,
                                             struct tn_sim_stream *stream);
void tn_sim_stream_end_capture(struct tn_sim_streams *streams, struct tn_sim_stream *stream);

/* The point after everything queued so far, and a copy of a point; release both with
 * tn_sim_point_clear. */
struct tn_sim_point tn_sim_point_take(const struct tn_sim_streams *streams,
                                      struct tn_sim_stream *stream);
struct tn_sim_point tn_sim_point_copy(const struct tn_sim_point *point);
void tn_sim_point_clear(struct tn_sim_point *point);
bool tn_sim_point_reached(const struct tn_sim_streams *streams, const struct tn_sim_point *point);

/* Adds every violated invariant of the captures to `findings`. */
void tn_sim_streams_check(const struct tn_sim_streams *streams, struct tarn_findings *findings);

enum tarn_status tn_sim_event_create(struct tn_sim_streams *streams, uint64_t *event_out);

/* These return TARN_ERR_NOT_FOUND for a name that is no live event; recording in a capture can fail
 * with TARN_ERR_HOST_MEMORY. An event that was never recorded is complete. */
enum tarn_status tn_sim_event_destroy(struct tn_sim_streams *streams, uint64_t event);
enum tarn_status tn_sim_event_record(struct tn_sim_streams *streams, uint64_t event,
                                     struct tn_sim_stream *stream);
enum tarn_status tn_sim_event_query(struct tn_sim_streams *streams, uint64_t event);
enum tarn_status tn_sim_event_wait(struct tn_sim_streams *streams, uint64_t event);
enum tarn_status tn_sim_event_complete(struct tn_sim_streams *streams, uint64_t event);

#endif
