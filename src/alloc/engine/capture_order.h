/* SPDX-License-Identifier: MIT */
/*
 * What the graph under capture proves about freed blocks, for the setting
 * graph_capture_record_stream_reuse.
 *
 *   marks  of a block: the last nodes of its captured uses, which are the terminals, when it was
 *          freed, of each stream that uses it
 *   view   of a stream: the nodes that its next captured work comes after, which are its terminals
 *          and all nodes before them
 *
 * A block whose marks are all in the view of a stream is free for captured work of that stream: the
 * graph runs that work after every use of the block.
 *
 * A view only grows, because the terminals of a stream only advance during a capture, and a node in
 * it is not walked again. There is one view per stream, of the capture that the stream was in at
 * the last look. Views can be dropped at any time, for the price of another walk; this is done when
 * a route ends.
 *
 * Owns: the views. Marks belong to their block's record (stream_use.h). Guarded by the engine's
 * lock. Cost: a walk visits each node before the terminals once; asking is O(1) per mark.
 */
#ifndef TN_ALLOC_ENGINE_CAPTURE_ORDER_H
#define TN_ALLOC_ENGINE_CAPTURE_ORDER_H

#include "base/attr.h"
#include "base/map.h"
#include "base/vec.h"
#include "device/device_ops.h"

/* All zero: none. */
struct tn_capture_marks {
    uint64_t capture;    /* id of the capture whose nodes they are, 0 = no marks */
    struct tn_vec nodes; /* tn_graph_node, each once */
};

struct tn_capture_view {
    tarn_stream stream;
    uint64_t capture;
    struct tn_map seen;    /* the nodes, as keys; the values are not used */
    struct tn_vec unasked; /* tn_graph_node: those whose parents are still to be asked for; empty
                              except after a walk that failed */
};

/* All zero is empty. */
struct tn_capture_order {
    struct tn_vec views;  /* struct tn_capture_view */
    struct tn_vec answer; /* tn_graph_node: the device's last answer */
};

/* Adds the terminals that the stream has now. Drops all marks if the stream is in no capture, or in
 * another one than the marks. On failure they are unchanged. */
enum tarn_status tn_capture_marks_add(struct tn_capture_order *order, struct tarn_device *device,
                                      struct tn_capture_marks *marks, tarn_stream stream,
                                      struct tarn_error *error) TN_MUST_CHECK;

/* Drops the marks; their memory stays. */
void tn_capture_marks_drop(struct tn_capture_marks *marks);
void tn_capture_marks_fini(struct tn_capture_marks *marks);

/* The stream's view as of now, borrowed until the next call; NULL when the stream is in no capture
 * or nothing has been captured yet. After a failure the next call continues the walk. */
enum tarn_status tn_capture_order_look(struct tn_capture_order *order, struct tarn_device *device,
                                       tarn_stream stream, const struct tn_capture_view **view_out,
                                       struct tarn_error *error) TN_MUST_CHECK;

/* Whether there are marks and the view has all of them. */
bool tn_capture_view_covers(const struct tn_capture_view *view,
                            const struct tn_capture_marks *marks);

/* Drops all views. */
void tn_capture_order_fini(struct tn_capture_order *order);

#endif
