/* SPDX-License-Identifier: MIT */
/* Streams under capture: what work came after what, through the device's table. */
#include "support/test.h"

#include "support/sim.h"

#include <string.h>

enum {
    A = 11,
    B = 12,
    C = 13,
    ROOM = 8
};

/* What the device says of a stream or a node. */
struct seen {
    uint64_t capture;
    uint32_t count;
    tn_graph_node node[ROOM];
};

static struct seen look(struct tarn_device *device, tarn_stream stream)
{
    struct seen seen = {.capture = 99, .count = 99};

    assert_int_equal(
        device->ops->capture_info(device, stream, &seen.capture, seen.node, ROOM, &seen.count),
        TARN_OK);
    return seen;
}

static struct seen parents(struct tarn_device *device, tn_graph_node node)
{
    struct seen seen = {.count = 99};

    assert_int_equal(device->ops->graph_node_parents(device, node, seen.node, ROOM, &seen.count),
                     TARN_OK);
    return seen;
}

static void capture(struct tarn_device *device, tarn_stream stream, bool on)
{
    assert_int_equal(tarn_sim_set_capturing(device, stream, on), TARN_OK);
}

/* Captures a piece of work and gives its node. */
static tn_graph_node work(struct tarn_device *device, tarn_stream stream)
{
    assert_int_equal(tarn_sim_enqueue_ns(device, stream, 100), TARN_OK);
    const struct seen seen = look(device, stream);

    assert_int_equal(seen.count, 1);
    assert_int_not_equal(seen.node[0], 0);
    return seen.node[0];
}

static void join(struct tarn_device *device, tarn_stream stream, tarn_stream other)
{
    assert_int_equal(tarn_sim_join_stream(device, stream, other), TARN_OK);
}

static tn_event_handle record(struct tarn_device *device, tarn_stream stream)
{
    tn_event_handle event = 0;

    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
    assert_int_equal(device->ops->event_record(device, event, stream), TARN_OK);
    return event;
}

static void a_stream_is_in_the_capture_that_was_begun(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(look(device, A).capture, 0);
    capture(device, A, true);
    const uint64_t first = look(device, A).capture;

    assert_int_not_equal(first, 0);
    assert_int_equal(look(device, A).count, 0);
    capture(device, A, true); /* is in one already */
    assert_int_equal(look(device, A).capture, first);
    assert_int_equal(look(device, B).capture, 0);
    capture(device, A, false);
    assert_int_equal(look(device, A).capture, 0);
    capture(device, A, false); /* is in none already */
    capture(device, A, true);
    capture(device, B, true);
    assert_int_not_equal(look(device, A).capture, first);
    assert_int_not_equal(look(device, A).capture, look(device, B).capture);
    capture(device, A, false);
    assert_int_not_equal(look(device, B).capture, 0);
    capture(device, B, false);
    sim_close(device);
}

static void captured_work_comes_one_after_the_other(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    capture(device, A, true);
    const tn_graph_node first = work(device, A);

    assert_int_equal(tarn_sim_block_stream(device, A), TARN_OK); /* is work like other */
    const tn_graph_node second = look(device, A).node[0];
    const tn_graph_node third = work(device, A);

    assert_int_equal(parents(device, first).count, 0);
    assert_int_equal(parents(device, second).count, 1);
    assert_int_equal(parents(device, second).node[0], first);
    assert_int_equal(parents(device, third).node[0], second);
    assert_int_equal(tarn_sim_unblock_stream(device, A), TARN_ERR_STATE);
    capture(device, A, false);
    /* None of it ran. */
    assert_int_equal(device->ops->stream_wait(device, A), TARN_OK);
    assert_int_equal(tarn_sim_now_ns(device), 0);
    sim_close(device);
}

static void a_stream_joins_by_waiting(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    capture(device, A, true);
    join(device, B, A); /* before there is any work */
    assert_int_equal(look(device, B).capture, look(device, A).capture);
    assert_int_equal(look(device, B).count, 0);
    const tn_graph_node a = work(device, A);
    const tn_graph_node b = work(device, B);

    assert_int_equal(parents(device, b).count, 0);
    join(device, A, B);
    join(device, A, B); /* nothing new */
    join(device, C, A);
    join(device, A, C); /* all of it known */
    capture(device, C, false);
    const struct seen both = look(device, A);

    assert_int_equal(both.count, 2);
    assert_int_equal(both.node[0], a);
    assert_int_equal(both.node[1], b);
    const tn_graph_node after = work(device, A);

    assert_int_equal(parents(device, after).count, 2);
    assert_int_equal(look(device, B).node[0], b); /* joined only one way */
    join(device, C, A);
    assert_int_equal(look(device, C).node[0], after);
    join(device, C, C);
    assert_int_equal(look(device, C).count, 1);
    capture(device, A, false);
    assert_int_equal(look(device, B).capture, 0);
    assert_int_equal(look(device, C).capture, 0);
    sim_close(device);
}

/* An event is the place where it was recorded, not where the stream is. */
static void events_mark_a_place(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_device_ops *ops = device->ops;

    (void)state;
    capture(device, A, true);
    const tn_graph_node a = work(device, A);
    const tn_event_handle event = record(device, A);

    (void)work(device, A);
    assert_int_equal(ops->stream_wait_event(device, B, event), TARN_OK);
    assert_int_equal(look(device, B).count, 1);
    assert_int_equal(look(device, B).node[0], a);
    assert_int_equal(ops->event_record(device, event, A), TARN_OK); /* moves it */
    assert_int_equal(ops->stream_wait_event(device, C, event), TARN_OK);
    assert_int_equal(look(device, C).node[0], look(device, A).node[0]);
    const tn_event_handle never = record(device, C);

    assert_int_equal(ops->event_destroy(device, never), TARN_OK);
    assert_int_equal(ops->event_create(device, (tn_event_handle[]){0}), TARN_OK);
    capture(device, A, false);
    /* The capture is over: what it marked is nothing to wait for. */
    assert_int_equal(ops->stream_wait_event(device, B, event), TARN_OK);
    assert_int_equal(look(device, B).capture, 0);
    assert_int_equal(ops->event_destroy(device, event), TARN_OK);
    sim_close(device);
}

static void events_of_a_capture_are_done_with_the_work_outside(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_device_ops *ops = device->ops;

    (void)state;
    assert_int_equal(tarn_sim_enqueue_ns(device, A, 50), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(device, B), TARN_OK);
    capture(device, A, true);
    join(device, B, A);
    (void)work(device, A);
    const tn_event_handle a = record(device, A);
    const tn_event_handle b = record(device, B);

    assert_int_equal(ops->event_query(device, a), TARN_ERR_NOT_READY);
    assert_int_equal(ops->event_wait(device, a), TARN_OK);
    assert_int_equal(tarn_sim_now_ns(device), 50);
    assert_int_equal(ops->event_query(device, b), TARN_ERR_NOT_READY);
    assert_int_equal(tarn_sim_unblock_stream(device, B), TARN_OK); /* older than the capture */
    assert_int_equal(ops->event_query(device, b), TARN_OK);
    assert_int_equal(ops->event_destroy(device, a), TARN_OK);
    assert_int_equal(ops->event_destroy(device, b), TARN_OK);
    sim_close(device); /* the capture goes with the device */
}

static void a_capture_takes_in_nothing_from_outside(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_device_ops *ops = device->ops;

    (void)state;
    const tn_event_handle outside = record(device, C);
    tn_event_handle never = 0;

    assert_int_equal(ops->event_create(device, &never), TARN_OK);
    capture(device, A, true);
    capture(device, B, true);
    const tn_graph_node a = work(device, A);
    const tn_event_handle other = record(device, B);

    assert_int_equal(tarn_sim_join_stream(device, A, B), TARN_ERR_STATE);
    assert_int_equal(tarn_sim_join_stream(device, A, C), TARN_ERR_STATE);
    assert_int_equal(ops->stream_wait_event(device, A, other), TARN_ERR_DEVICE);
    assert_non_null(strstr(ops->last_error(device), "cannot wait for work that is not in it"));
    assert_int_equal(ops->stream_wait_event(device, A, outside), TARN_ERR_DEVICE);
    assert_int_equal(ops->stream_wait_event(device, A, never), TARN_OK);
    assert_int_equal(look(device, A).count, 1);
    assert_int_equal(look(device, A).node[0], a);
    capture(device, B, false);
    assert_int_equal(ops->stream_wait_event(device, A, other), TARN_ERR_DEVICE); /* is over */
    capture(device, A, false);
    assert_int_equal(ops->event_destroy(device, outside), TARN_OK);
    assert_int_equal(ops->event_destroy(device, other), TARN_OK);
    assert_int_equal(ops->event_destroy(device, never), TARN_OK);
    sim_close(device);
}

static void a_joined_stream_can_leave_alone(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    capture(device, A, true);
    join(device, B, A);
    (void)work(device, B);
    const tn_event_handle event = record(device, B);

    capture(device, B, false);
    assert_int_equal(look(device, B).capture, 0);
    assert_int_not_equal(look(device, A).capture, 0);
    assert_int_equal(tarn_sim_enqueue_ns(device, B, 30), TARN_OK); /* runs */
    assert_int_equal(device->ops->stream_wait(device, B), TARN_OK);
    assert_int_equal(tarn_sim_now_ns(device), 30);
    assert_int_equal(device->ops->stream_wait_event(device, A, event), TARN_OK);
    assert_int_equal(look(device, A).count, 1);
    capture(device, A, false);
    assert_int_equal(device->ops->event_destroy(device, event), TARN_OK);
    sim_close(device);
}

static void the_room_for_nodes_may_be_too_small(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const struct tn_device_ops *ops = device->ops;
    tn_graph_node node[3] = {7, 7, 7};
    uint64_t number = 0;
    uint32_t count = 0;

    (void)state;
    capture(device, A, true);
    for (tarn_stream s = 100; s < 140; s++) {
        join(device, s, A);
        (void)work(device, s);
        join(device, A, s);
    }
    assert_int_equal(ops->capture_info(device, A, &number, node, 2, &count), TARN_OK);
    assert_int_equal(count, 40);
    assert_int_not_equal(node[1], 7);
    assert_int_equal(node[2], 7);
    assert_int_equal(tarn_sim_enqueue_ns(device, A, 1), TARN_OK);
    assert_int_equal(ops->capture_info(device, A, &number, node, 3, &count), TARN_OK);
    assert_int_equal(count, 1);
    assert_int_equal(ops->graph_node_parents(device, node[0], NULL, 0, &count), TARN_OK);
    assert_int_equal(count, 40);
    const tn_graph_node last = node[0];

    assert_int_equal(ops->graph_node_parents(device, last, node, 2, &count), TARN_OK);
    assert_int_equal(count, 40);
    assert_int_not_equal(node[0], last);
    capture(device, A, false);
    sim_close(device);
}

static void unknown_nodes_are_refused(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    uint32_t count = 77;

    (void)state;
    capture(device, A, true);
    const tn_graph_node node = work(device, A);
    const tn_graph_node wrong[] = {0, 1, node + 1, node - 1, ~(tn_graph_node)0};

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(device->ops->graph_node_parents(device, wrong[i], NULL, 0, &count),
                         TARN_ERR_DEVICE);
        assert_non_null(strstr(device->ops->last_error(device), "no graph under capture has"));
    }
    capture(device, A, false);
    assert_int_equal(device->ops->graph_node_parents(device, node, NULL, 0, &count),
                     TARN_ERR_DEVICE); /* went with its capture */
    assert_int_equal(count, 77);
    sim_close(device);
}

/* A capture of several streams with every allocation of host memory failing in turn. */
static void without_host_memory_nothing_changes(void **state)
{
    uint64_t failures = 0;
    bool failed = true;

    (void)state;
    for (uint64_t n = 1; failed; n++) {
        const uint64_t live = tarn_host_get_usage().live_bytes;
        struct tarn_device *device = sim_open(GIB);

        failed = false;
        tarn_host_fail_nth(n);
        for (int step = 0; step < 5; step++) {
            const struct seen before[2] = {look(device, A), look(device, B)};
            enum tarn_status st = TARN_ERR_HOST_MEMORY;

            while (st == TARN_ERR_HOST_MEMORY) { /* a retry works */
                st = step == 0   ? tarn_sim_set_capturing(device, A, true)
                     : step == 1 ? tarn_sim_enqueue_ns(device, A, 1)
                     : step == 2 ? tarn_sim_join_stream(device, B, A)
                     : step == 3 ? tarn_sim_enqueue_ns(device, B, 1)
                                 : tarn_sim_join_stream(device, A, B);
                if (st == TARN_ERR_HOST_MEMORY) {
                    const struct seen after[2] = {look(device, A), look(device, B)};

                    assert_memory_equal(before, after, sizeof before);
                    failed = true;
                    failures++;
                }
            }
            assert_int_equal(st, TARN_OK);
        }
        tarn_host_fail_nth(0);
        assert_int_equal(look(device, A).count, 2);
        capture(device, A, false);
        sim_close(device);
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    assert_true(failures >= 7);
}

static void graphs_are_limited(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    capture(device, A, true);
    (void)work(device, A);
    struct tn_sim_graph *graph = tn_sim_from(device)->streams.graphs.first;
    size_t *const counts[] = {&graph->nodes.count, &graph->edges.count};

    for (size_t i = 0; i < 2; i++) {
        const size_t count = *counts[i];

        *counts[i] = UINT32_MAX;
        assert_int_equal(tarn_sim_enqueue_ns(device, A, 100), TARN_ERR_LIMIT);
        *counts[i] = count;
    }
    const size_t edges = graph->edges.count;

    graph->edges.count = UINT32_MAX - 1; /* work after the first has one more */
    assert_int_equal(tarn_sim_enqueue_ns(device, A, 100), TARN_ERR_LIMIT);
    graph->edges.count = edges;
    (void)work(device, A);
    capture(device, A, false);
    sim_close(device);
}

/* An event of a capture with many terminals, and a stream that is not known yet. */
static void marks_need_host_memory(void **state)
{
    enum {
        MANY = 40
    };
    struct tarn_device *device = sim_open(GIB);
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    tn_event_handle event = 0;
    uint64_t n = 0;

    (void)state;
    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
    capture(device, A, true);
    const tn_graph_node first = work(device, A);

    for (tarn_stream stream = C; stream < C + MANY; stream++) {
        join(device, stream, A);
        (void)work(device, stream);
        join(device, A, stream);
    }
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->event_record(device, event, A), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_int_equal(device->ops->event_record(device, event, A), TARN_OK);
    while (st == TARN_ERR_HOST_MEMORY) {
        tarn_host_fail_nth(++n);
        st = tarn_sim_join_stream(device, 1001, 1002);
        tarn_host_fail_nth(0);
    }
    assert_int_equal(st, TARN_OK);
    assert_true(n > 2); /* either of them was missing */
    assert_int_equal(parents(device, first).count, 0);
    capture(device, A, false);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_is_in_the_capture_that_was_begun),
        cmocka_unit_test(captured_work_comes_one_after_the_other),
        cmocka_unit_test(a_stream_joins_by_waiting),
        cmocka_unit_test(events_mark_a_place),
        cmocka_unit_test(events_of_a_capture_are_done_with_the_work_outside),
        cmocka_unit_test(a_capture_takes_in_nothing_from_outside),
        cmocka_unit_test(a_joined_stream_can_leave_alone),
        cmocka_unit_test(the_room_for_nodes_may_be_too_small),
        cmocka_unit_test(unknown_nodes_are_refused),
        cmocka_unit_test(without_host_memory_nothing_changes),
        cmocka_unit_test(graphs_are_limited),
        cmocka_unit_test(marks_need_host_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
