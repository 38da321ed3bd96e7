/* SPDX-License-Identifier: MIT */
/*
 * How far the device has come on each stream: whether work that may have used a free block is done.
 *
 * Time is counted in epochs. Every free block remembers the epoch in which it went into its free
 * set (core.h: gc_base, which the exact policy uses for ages). A mark is an event on a stream that
 * ends an epoch: once it is done, so is all work on blocks that became free in that epoch or
 * before. A block that is freed again, or coalesced, has a new epoch, so nothing has to be tracked
 * while calls are served.
 *
 * Owns: marks, and events not in use. Guarded by the heap's lock. No function may be called while
 * requests are routed to private pools, unless it says so: perhaps a graph is being captured, and
 * then events can neither be recorded nor queried.
 */
#ifndef TN_ALLOC_COMPACT_STREAM_ORDER_H
#define TN_ALLOC_COMPACT_STREAM_ORDER_H

#include "alloc/pool/heap.h"
#include "base/vec.h"

enum {
    TN_ORDER_MARKS = 4 /* per stream that are not known to be done */
};

struct tn_order_mark {
    tn_event_handle event;
    int64_t epoch; /* that it ended */
};

struct tn_order_stream {
    tarn_stream stream;
    int64_t done;                               /* epochs up to this one are done */
    struct tn_order_mark marks[TN_ORDER_MARKS]; /* oldest first */
    unsigned count;
    bool was_taken_from; /* another stream got pages of this one */
    bool takes_turns;    /* and then this one needed pages */
};

struct tn_stream_order {
    struct tn_heap *heap;
    struct tn_vec streams; /* struct tn_order_stream, by handle */
    struct tn_vec events;  /* tn_event_handle: not in use */
    int64_t epoch;         /* the present one: the find_count of every pool */
    bool is_shared;        /* a stream got pages of another one */
};

void tn_stream_order_init(struct tn_stream_order *order, struct tn_heap *heap);
void tn_stream_order_fini(struct tn_stream_order *order);

/* An event recorded on the stream; give it back with tn_order_give. On failure nothing changed. */
enum tarn_status tn_order_record(struct tn_stream_order *order, tarn_stream stream,
                                 tn_event_handle *event_out,
                                 struct tarn_error *error) TN_MUST_CHECK;

/* Takes back an event that is not needed any more. Also while requests are routed. */
void tn_order_give(struct tn_stream_order *order, tn_event_handle event);

/* Makes the stream's later work wait, on the device, for the event. */
enum tarn_status tn_order_after(const struct tn_stream_order *order, tarn_stream stream,
                                tn_event_handle event, struct tarn_error *error) TN_MUST_CHECK;

/* The same for what is queued on `other` now. */
enum tarn_status tn_order_wait(struct tn_stream_order *order, tarn_stream stream, tarn_stream other,
                               struct tarn_error *error) TN_MUST_CHECK;

/* Looks which marks of the stream are done, and returns the newest epoch that is; -1: none. */
int64_t tn_order_poll(struct tn_stream_order *order, tarn_stream stream);

/* The same as of the last look. Also while requests are routed. */
int64_t tn_order_done(const struct tn_stream_order *order, tarn_stream stream);

/* The newest epoch that a mark of the stream ended; -1: none. Also while requests are routed. */
int64_t tn_order_marked(const struct tn_stream_order *order, tarn_stream stream);

/* Makes room for marks of the stream; false when host memory is missing. Also while requests are
 * routed. */
bool tn_order_add(struct tn_stream_order *order, tarn_stream stream) TN_MUST_CHECK;

/* Notes that another stream got pages of this one. Also while requests are routed. */
void tn_order_taken(struct tn_stream_order *order, tarn_stream stream);

/* Notes that the stream needs pages. Also while requests are routed. */
void tn_order_needs(struct tn_stream_order *order, tarn_stream stream);

/* Whether the stream needed pages after others had got some of its own. Also while requests are
 * routed. */
bool tn_order_takes_turns(const struct tn_stream_order *order, tarn_stream stream);

/* Marks the stream, ending the epoch. Does nothing if it has TN_ORDER_MARKS or if the device fails:
 * free pages are then used later. The same without host memory, unless tn_order_add has made
 * room. */
void tn_order_mark(struct tn_stream_order *order, tarn_stream stream);

#endif
