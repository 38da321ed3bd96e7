/* SPDX-License-Identifier: MIT */
#include "alloc/engine/capture_order.h"

#include "alloc/pool/failure.h"
#include "base/assertion.h"
#include "base/errinfo.h"

/* Room for `more` nodes. Sets the size of an item, because the list may be all zero. */
static bool nodes_reserve(struct tn_vec *nodes, size_t more)
{
    nodes->item_size = sizeof(tn_graph_node);
    return tn_vec_reserve(nodes, more);
}

static tn_graph_node *nodes_of(const struct tn_vec *nodes)
{
    return nodes->items;
}

static bool nodes_have(const struct tn_vec *nodes, tn_graph_node node)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes_of(nodes)[i] == node) {
            return true;
        }
    }
    return false;
}

/* ---- asking the device ---- */

/* Asks until the answer fits: for the stream's capture and terminals, or with `capture_out` NULL
 * for the parents of a node. */
static enum tarn_status order_ask(struct tn_capture_order *order, struct tarn_device *device,
                                  uint64_t stream_or_node, uint64_t *capture_out,
                                  struct tarn_error *error)
{
    struct tn_vec *answer = &order->answer;
    enum tarn_status st;
    uint32_t count = 0;

    do {
        answer->count = 0;
        if (!nodes_reserve(answer, count)) {
            return tn_fail_memory(error);
        }
        /* More nodes would need 32 GiB of the host. */
        const uint32_t room =
            tn_always(answer->capacity < UINT32_MAX) ? (uint32_t)answer->capacity : UINT32_MAX;

        st = capture_out ? device->ops->capture_info(device, stream_or_node, capture_out,
                                                     answer->items, room, &count)
                         : device->ops->graph_node_parents(device, stream_or_node, answer->items,
                                                           room, &count);
    } while (st == TARN_OK && count > answer->capacity);
    if (st) {
        return tn_device_failed(device, st, "querying the graph under capture", error);
    }
    answer->count = count;
    return TARN_OK;
}

/* ---- marks ---- */

enum tarn_status tn_capture_marks_add(struct tn_capture_order *order, struct tarn_device *device,
                                      struct tn_capture_marks *marks, tarn_stream stream,
                                      struct tarn_error *error)
{
    const struct tn_vec *terminals = &order->answer;
    uint64_t capture = 0;
    const enum tarn_status st = order_ask(order, device, stream, &capture, error);

    if (st) {
        return st;
    }
    if (capture == 0 || (marks->capture != 0 && marks->capture != capture)) {
        tn_capture_marks_drop(marks);
        return TARN_OK;
    }
    if (!nodes_reserve(&marks->nodes, terminals->count)) {
        return tn_fail_memory(error);
    }
    marks->capture = capture;
    for (size_t i = 0; i < terminals->count; i++) {
        if (!nodes_have(&marks->nodes, nodes_of(terminals)[i])) {
            nodes_of(&marks->nodes)[marks->nodes.count++] = nodes_of(terminals)[i];
        }
    }
    return TARN_OK;
}

void tn_capture_marks_drop(struct tn_capture_marks *marks)
{
    marks->capture = 0;
    marks->nodes.count = 0;
}

void tn_capture_marks_fini(struct tn_capture_marks *marks)
{
    tn_vec_fini(&marks->nodes);
    marks->capture = 0;
}

/* ---- views ---- */

static void view_clear(struct tn_capture_view *view)
{
    tn_map_fini(&view->seen);
    tn_vec_fini(&view->unasked);
}

/* The stream's view of that capture, started afresh if the stream was in another one; NULL when
 * host memory is missing. */
static struct tn_capture_view *order_view(struct tn_capture_order *order, tarn_stream stream,
                                          uint64_t capture)
{
    struct tn_capture_view *view = order->views.items;
    size_t left = order->views.count;

    while (left > 0 && view->stream != stream) {
        view++;
        left--;
    }
    if (left == 0) {
        order->views.item_size = sizeof *view;
        view = tn_vec_push(&order->views);
    } else if (view->capture != capture) {
        view_clear(view);
    }
    if (view) {
        view->stream = stream;
        view->capture = capture;
    }
    return view;
}

/* Room to add the device's last answer. */
static bool view_reserve(struct tn_capture_view *view, const struct tn_vec *answer)
{
    return tn_map_reserve(&view->seen, answer->count) &&
           nodes_reserve(&view->unasked, answer->count);
}

/* Adds the nodes that are new; there is room. */
static void view_add(struct tn_capture_view *view, const struct tn_vec *answer)
{
    for (size_t i = 0; i < answer->count; i++) {
        const tn_graph_node node = nodes_of(answer)[i];

        if (!tn_map_find(&view->seen, node)) {
            tn_map_insert(&view->seen, node, 1);
            nodes_of(&view->unasked)[view->unasked.count++] = node;
        }
    }
}

/* Asks for the parents of one node. On failure it stays among the unasked. */
static enum tarn_status view_step(struct tn_capture_order *order, struct tarn_device *device,
                                  struct tn_capture_view *view, struct tarn_error *error)
{
    const struct tn_vec *answer = &order->answer;
    const enum tarn_status st =
        order_ask(order, device, nodes_of(&view->unasked)[view->unasked.count - 1], NULL, error);

    if (st) {
        return st;
    }
    if (!view_reserve(view, answer)) {
        return tn_fail_memory(error);
    }
    view->unasked.count--;
    view_add(view, answer);
    return TARN_OK;
}

enum tarn_status tn_capture_order_look(struct tn_capture_order *order, struct tarn_device *device,
                                       tarn_stream stream, const struct tn_capture_view **view_out,
                                       struct tarn_error *error)
{
    uint64_t capture = 0;
    enum tarn_status st = order_ask(order, device, stream, &capture, error);

    if (st) {
        return st;
    }
    if (order->answer.count == 0) { /* as without a capture */
        *view_out = NULL;
        return TARN_OK;
    }
    struct tn_capture_view *view = order_view(order, stream, capture);

    if (!view || !view_reserve(view, &order->answer)) {
        return tn_fail_memory(error);
    }
    view_add(view, &order->answer);
    while (st == TARN_OK && view->unasked.count > 0) {
        st = view_step(order, device, view, error);
    }
    if (st == TARN_OK) {
        *view_out = view;
    }
    return st;
}

bool tn_capture_view_covers(const struct tn_capture_view *view,
                            const struct tn_capture_marks *marks)
{
    if (marks->capture != view->capture) {
        return false;
    }
    for (size_t i = 0; i < marks->nodes.count; i++) {
        if (!tn_map_find(&view->seen, nodes_of(&marks->nodes)[i])) {
            return false;
        }
    }
    return true;
}

void tn_capture_order_fini(struct tn_capture_order *order)
{
    struct tn_capture_view *views = order->views.items;

    for (size_t i = 0; i < order->views.count; i++) {
        view_clear(&views[i]);
    }
    tn_vec_fini(&order->views);
    tn_vec_fini(&order->answer);
}
