/* SPDX-License-Identifier: MIT */
/* graph_capture_record_stream_reuse: blocks of several streams used again within a capture. Names
 * in comments are PyTorch's. */
#include "support/any_stream.h"
#include "support/test.h"

#include "support/rig.h"

enum {
    MAIN = 1,
    SIDE = 2,
    THIRD = 3,
    FOURTH = 4,
    STRANGER = 9 /* takes part in no capture */
};

#define REUSE "graph_capture_record_stream_reuse:True"
#define SIZE  (30 * MIB)

static const struct tarn_pool_id pool = {0, 1};

static bool no_stream(void *context, tarn_stream stream)
{
    (void)context;
    (void)stream;
    return false;
}

static void begin_routing(struct rig *rig, tarn_pool_filter filter)
{
    assert_int_equal(tarn_allocator_begin_pool(rig->allocator, pool, filter, NULL, &rig->error),
                     TARN_OK);
}

static void end_routing(struct rig *rig)
{
    assert_int_equal(tarn_allocator_end_pool(rig->allocator, pool, &rig->error), TARN_OK);
    assert_int_equal(rig_engine(rig->allocator)->waits.order.views.count, 0); /* all dropped */
}

static void capture(struct rig *rig, tarn_stream stream, bool on)
{
    assert_int_equal(tarn_sim_set_capturing(rig->device, stream, on), TARN_OK);
}

static void work(struct rig *rig, tarn_stream stream)
{
    assert_int_equal(tarn_sim_enqueue_ns(rig->device, stream, 1), TARN_OK);
}

static void join(struct rig *rig, tarn_stream stream, tarn_stream other)
{
    assert_int_equal(tarn_sim_join_stream(rig->device, stream, other), TARN_OK);
}

/* An allocator that routes everything to a pool, MAIN in a capture with some work. */
static void capture_open(struct rig *rig, const char *conf)
{
    rig_open(rig, 2 * GIB, conf);
    begin_routing(rig, any_stream);
    capture(rig, MAIN, true);
    work(rig, MAIN);
}

static void capture_close(struct rig *rig)
{
    capture(rig, MAIN, false);
    end_routing(rig);
    rig_close(rig);
}

/* A block of MAIN, used on SIDE in the same capture, and freed. */
static tarn_ptr freed_on_side(struct rig *rig)
{
    const tarn_ptr ptr = rig_alloc(rig, SIZE, MAIN);

    join(rig, SIDE, MAIN);
    work(rig, SIDE);
    rig_record(rig, ptr, SIDE);
    rig_free(rig, ptr);
    return ptr;
}

static uint64_t calls(struct rig *rig, enum tarn_sim_call call)
{
    return sim_counters(rig->device).calls[call];
}

/* test_graph_capture_reclaim_2_streams. */
static void a_block_comes_back_when_the_other_stream_is_joined(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    const tarn_ptr x = freed_on_side(&rig);

    work(&rig, MAIN);
    const tarn_ptr other = rig_alloc(&rig, SIZE, MAIN); /* SIDE may still use x then */

    assert_int_not_equal(other, x);
    const int64_t reserved = rig_now(&rig, TARN_STAT_RESERVED_BYTES);

    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2);
    join(&rig, MAIN, SIDE);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), reserved);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2);
    assert_int_equal(calls(&rig, TARN_SIM_EVENT_RECORD), 0);
    rig_free(&rig, x); /* its uses are forgotten: free at once */
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture_close(&rig);
}

/* test_graph_capture_reclaim_4_streams: MAIN to SIDE and THIRD, both to FOURTH, that to MAIN. */
static void a_block_comes_back_when_all_streams_are_joined(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    const tarn_ptr x = rig_alloc(&rig, SIZE, MAIN);

    join(&rig, SIDE, MAIN);
    join(&rig, THIRD, MAIN);
    work(&rig, SIDE);
    work(&rig, THIRD);
    join(&rig, FOURTH, SIDE);
    work(&rig, FOURTH);
    for (tarn_stream s = SIDE; s <= FOURTH; s++) {
        rig_record(&rig, x, s);
    }
    rig_free(&rig, x);
    tarn_ptr other = rig_alloc(&rig, SIZE, MAIN);

    assert_int_not_equal(other, x);
    rig_free(&rig, other);
    join(&rig, MAIN, FOURTH); /* SIDE through it; THIRD not yet */
    work(&rig, MAIN);
    other = rig_alloc(&rig, SIZE, MAIN);
    assert_int_not_equal(other, x);
    const int64_t reserved = rig_now(&rig, TARN_STAT_RESERVED_BYTES);

    join(&rig, FOURTH, THIRD);
    work(&rig, FOURTH);
    work(&rig, FOURTH);
    join(&rig, MAIN, FOURTH);
    work(&rig, MAIN);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    assert_int_equal(rig_now(&rig, TARN_STAT_RESERVED_BYTES), reserved);
    capture_close(&rig);
}

/* Also where a free block of the size would do: the one that comes back is before it. */
static void a_block_comes_back_before_others_are_used(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 2 * GIB, REUSE);
    begin_routing(&rig, no_stream); /* a capture of other streams' memory */
    capture(&rig, MAIN, true);
    work(&rig, MAIN);
    const tarn_ptr x = freed_on_side(&rig);
    const tarn_ptr other = rig_alloc(&rig, SIZE, MAIN);

    assert_true(other > x);
    rig_free(&rig, other);
    join(&rig, MAIN, SIDE);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture_close(&rig);
}

/* A device that captures must not be asked whether an event is done. */
static void no_event_is_queried_in_a_capture(void **state)
{
    struct rig rig;

    (void)state;
    rig_open_manual(&rig, 2 * GIB, "");
    const tarn_ptr waits = rig_alloc(&rig, SIZE, MAIN);

    rig_record(&rig, waits, SIDE);
    rig_free(&rig, waits);
    rig_free(&rig, rig_alloc(&rig, 512, MAIN));
    begin_routing(&rig, no_stream);
    const uint64_t queries = calls(&rig, TARN_SIM_EVENT_QUERY);

    for (int i = 0; i < 10; i++) {
        rig_free(&rig, rig_alloc(&rig, 512, MAIN));
    }
    assert_int_equal(calls(&rig, TARN_SIM_EVENT_QUERY), queries);
    end_routing(&rig);
    rig_close(&rig);
}

static void without_the_setting_it_waits_for_the_end(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, "");
    const tarn_ptr x = freed_on_side(&rig);

    join(&rig, MAIN, SIDE);
    assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), x);
    assert_int_equal(calls(&rig, TARN_SIM_CAPTURE_INFO), 0);
    capture_close(&rig);
}

/* A free looks at the setting, and so does an allocation. */
static void the_setting_may_change_in_a_capture(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, "");
    const tarn_ptr unmarked = freed_on_side(&rig);

    rig_configure(&rig, REUSE);
    const tarn_ptr marked = freed_on_side(&rig);

    assert_int_not_equal(marked, unmarked);
    rig_configure(&rig, "graph_capture_record_stream_reuse:False");
    join(&rig, MAIN, SIDE);
    const tarn_ptr third = rig_alloc(&rig, SIZE, MAIN);

    assert_int_not_equal(third, marked);
    rig_configure(&rig, REUSE);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), marked);
    assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), unmarked);
    capture_close(&rig);
}

/* Only a request of the block's own stream asks for it. */
static void other_streams_do_not_ask_for_it(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    const tarn_ptr x = freed_on_side(&rig);

    join(&rig, MAIN, SIDE);
    join(&rig, THIRD, MAIN);
    (void)rig_alloc(&rig, SIZE, THIRD);
    (void)rig_alloc(&rig, SIZE, SIDE);
    (void)rig_alloc(&rig, SIZE, STRANGER);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 4);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture_close(&rig);
}

/* PyTorch asserts that the streams of a block are all in one graph. */
static void uses_outside_of_the_capture_prove_nothing(void **state)
{
    static const tarn_stream elsewhere[] = {STRANGER, THIRD};
    struct rig rig;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        capture_open(&rig, REUSE);
        capture(&rig, THIRD, true); /* a capture of its own */
        work(&rig, THIRD);
        const tarn_ptr x = rig_alloc(&rig, SIZE, MAIN);

        join(&rig, SIDE, MAIN);
        rig_record(&rig, x, SIDE);
        rig_record(&rig, x, elsewhere[i]);
        rig_free(&rig, x);
        const tarn_ptr y = rig_alloc(&rig, SIZE, STRANGER);

        rig_record(&rig, y, MAIN);
        rig_free(&rig, y);
        join(&rig, MAIN, SIDE);
        assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), x);
        assert_int_not_equal(rig_alloc(&rig, SIZE, STRANGER), y);
        assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 4);
        capture(&rig, THIRD, false);
        capture_close(&rig);
    }
}

static void nothing_captured_proves_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 2 * GIB, REUSE);
    begin_routing(&rig, any_stream);
    capture(&rig, MAIN, true);
    const tarn_ptr x = rig_alloc(&rig, SIZE, MAIN);

    join(&rig, SIDE, MAIN);
    rig_record(&rig, x, SIDE);
    rig_free(&rig, x);
    const tarn_ptr y = rig_alloc(&rig, SIZE, MAIN);

    assert_int_not_equal(y, x);
    join(&rig, MAIN, SIDE);
    work(&rig, MAIN);
    assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), x);
    /* Work on one of the streams is enough to go by. */
    rig_record(&rig, y, SIDE);
    rig_free(&rig, y);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), y);
    capture_close(&rig);
}

/* What is still deferred when the capture is over goes the way of all deferred blocks. */
static void after_the_capture_marks_mean_nothing(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 2 * GIB, REUSE);
    const tarn_ptr busy = rig_alloc(&rig, SIZE, MAIN);

    rig_record(&rig, busy, SIDE); /* outside of any capture */
    assert_int_equal(tarn_sim_block_stream(rig.device, SIDE), TARN_OK);
    begin_routing(&rig, any_stream);
    capture(&rig, MAIN, true);
    work(&rig, MAIN);
    const tarn_ptr x = freed_on_side(&rig);

    rig_free(&rig, busy);
    capture(&rig, MAIN, false);
    end_routing(&rig);
    const tarn_ptr y = rig_alloc(&rig, SIZE, MAIN); /* not from the private pool */

    assert_int_not_equal(y, x);
    assert_int_not_equal(y, busy);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 2); /* x is free, busy waits for SIDE */
    assert_int_equal(calls(&rig, TARN_SIM_EVENT_RECORD), 1);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, SIDE), TARN_OK);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), busy);
    rig_close(&rig);
}

/* The routing goes on over two captures: the second proves nothing about the first. */
static void marks_are_of_one_capture(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    const tarn_ptr x = freed_on_side(&rig);

    capture(&rig, MAIN, false);
    capture(&rig, MAIN, true);
    work(&rig, MAIN);
    const tarn_ptr y = freed_on_side(&rig);

    assert_int_not_equal(y, x);
    join(&rig, MAIN, SIDE);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), y);
    assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture_close(&rig);
}

/* PyTorch asserts "Could not find memory pool id for capture". */
static void the_stream_need_not_be_routed(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 2 * GIB, REUSE);
    begin_routing(&rig, no_stream);
    capture(&rig, MAIN, true);
    work(&rig, MAIN);
    const tarn_ptr x = freed_on_side(&rig);

    join(&rig, MAIN, SIDE);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture_close(&rig);
}

/* Addresses of completed frees. */
struct completed {
    tarn_ptr address[8];
    size_t count;
};

static void note_completed(void *context, const struct tarn_trace_event *event)
{
    struct completed *completed = context;

    if (event->action == TARN_ACTION_FREE_COMPLETED && completed->count < 8) {
        completed->address[completed->count++] = event->address;
    }
}

static void blocks_come_back_in_the_order_of_their_frees(void **state)
{
    static const int order[] = {2, 0, 3, 1};
    struct completed completed = {.count = 0};
    const struct tarn_sink sink = {.context = &completed, .receive = note_completed};
    tarn_ptr ptr[4];
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    join(&rig, SIDE, MAIN);
    for (uint64_t i = 0; i < 4; i++) {
        ptr[i] = rig_alloc(&rig, SIZE + i * 2 * MIB, MAIN);
        rig_record(&rig, ptr[i], SIDE);
    }
    for (int i = 0; i < 4; i++) {
        rig_free(&rig, ptr[order[i]]);
    }
    join(&rig, MAIN, SIDE);
    assert_int_equal(tarn_allocator_add_sink(rig.allocator, &sink, &rig.error), TARN_OK);
    (void)rig_alloc(&rig, 512, MAIN);
    assert_int_equal(completed.count, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(completed.address[i], ptr[order[i]]);
    }
    capture_close(&rig);
}

/* The graph is walked on, not anew, and only when something could come of it. */
static void each_node_is_asked_about_once(void **state)
{
    enum {
        NODES = 300
    };
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    for (int i = 1; i < NODES; i++) {
        work(&rig, MAIN);
        rig_free(&rig, rig_alloc(&rig, 512, MAIN));
    }
    assert_int_equal(calls(&rig, TARN_SIM_CAPTURE_INFO), 0);
    (void)freed_on_side(&rig);
    for (int i = 0; i < 5; i++) {
        (void)rig_alloc(&rig, 512, MAIN);
        assert_int_equal(calls(&rig, TARN_SIM_GRAPH_NODE_PARENTS), NODES + i);
        work(&rig, MAIN);
    }
    join(&rig, MAIN, SIDE);
    (void)rig_alloc(&rig, 512, MAIN);
    assert_int_equal(calls(&rig, TARN_SIM_GRAPH_NODE_PARENTS), NODES + 6);
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 6);
    capture_close(&rig);
}

/* More streams than the first answer has room for. */
static void many_streams_take_part(void **state)
{
    enum {
        FIRST = 100,
        STREAMS = 40
    };
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    const tarn_ptr x = rig_alloc(&rig, SIZE, MAIN);

    for (tarn_stream s = FIRST; s < FIRST + STREAMS; s++) {
        join(&rig, s, MAIN);
        work(&rig, s);
        rig_record(&rig, x, s);
    }
    rig_free(&rig, x);
    for (tarn_stream s = FIRST; s < FIRST + STREAMS - 1; s++) {
        join(&rig, MAIN, s);
    }
    assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), x);
    join(&rig, MAIN, FIRST + STREAMS - 1);
    work(&rig, MAIN); /* a node after all of them */
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture_close(&rig);
}

/* A routing that ends leaves no memory of what was walked, and the next one starts again. */
static void what_was_walked_goes_with_the_routing(void **state)
{
    struct rig rig;
    uint64_t live = 0;

    (void)state;
    rig_open(&rig, 2 * GIB, REUSE);
    for (int round = 0; round < 20; round++) {
        begin_routing(&rig, any_stream);
        capture(&rig, MAIN, true);
        for (int i = 0; i < 2000; i++) {
            work(&rig, MAIN);
        }
        const tarn_ptr x = freed_on_side(&rig);

        join(&rig, MAIN, SIDE);
        assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
        rig_free(&rig, x);
        capture(&rig, MAIN, false);
        end_routing(&rig);
        live = round == 0 ? tarn_host_get_usage().live_bytes : live;
        assert_int_equal(tarn_host_get_usage().live_bytes, live);
    }
    rig_close(&rig);
}

/* ---- failures ---- */

static enum tarn_status try_free(struct rig *rig, tarn_ptr ptr)
{
    return tarn_allocator_free(rig->allocator, ptr, &rig->error);
}

static enum tarn_status try_alloc(struct rig *rig, tarn_ptr *ptr_out)
{
    return tarn_allocator_alloc(rig->allocator, SIZE, MAIN, ptr_out, &rig->error);
}

/* What fails: calls of a kind, or host memory (TARN_SIM_ANY). */
static void plan(struct rig *rig, enum tarn_sim_call call, uint64_t n)
{
    if (call == TARN_SIM_ANY) {
        tarn_host_fail_nth(n);
    } else {
        tarn_sim_fail_nth(rig->device, call, n, TARN_ERR_DEVICE);
    }
}

/* A free and an allocation that gets the block back; the n-th call of one of them fails and is
 * tried again. Returns whether it did fail. */
static bool survives(enum tarn_sim_call call, bool at_free, uint64_t n)
{
    const enum tarn_status expected = call == TARN_SIM_ANY ? TARN_ERR_HOST_MEMORY : TARN_ERR_DEVICE;
    const tarn_stream end = SIDE + 20;
    struct rig rig;
    tarn_ptr y = 0;

    capture_open(&rig, REUSE);
    const tarn_ptr x = rig_alloc(&rig, SIZE, MAIN);

    for (tarn_stream s = SIDE; s < end; s++) {
        join(&rig, s, MAIN);
        work(&rig, s);
        rig_record(&rig, x, s);
    }
    plan(&rig, call, at_free ? n : 0);
    const enum tarn_status freeing = try_free(&rig, x);

    plan(&rig, call, 0);
    if (freeing) {
        assert_int_equal(freeing, expected);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 1);
        rig_check(&rig);
        rig_free(&rig, x);
    }
    for (tarn_stream s = SIDE; s < end; s++) {
        join(&rig, MAIN, s);
    }
    plan(&rig, call, at_free ? 0 : n);
    const enum tarn_status allocating = try_alloc(&rig, &y);

    plan(&rig, call, 0);
    if (allocating) {
        assert_int_equal(allocating, expected);
        assert_int_equal(rig_now(&rig, TARN_STAT_ALLOCATION), 0);
        rig_check(&rig);
        assert_int_equal(try_alloc(&rig, &y), TARN_OK);
    }
    assert_int_equal(y, x);
    capture_close(&rig);
    return freeing || allocating;
}

static uint64_t survived(enum tarn_sim_call call, bool at_free)
{
    uint64_t n = 1;

    while (survives(call, at_free, n)) {
        n++;
    }
    return n - 1;
}

static void every_failure_can_be_tried_again(void **state)
{
    (void)state;
    assert_true(survived(TARN_SIM_CAPTURE_INFO, true) >= 21);
    assert_true(survived(TARN_SIM_CAPTURE_INFO, false) >= 1);
    assert_true(survived(TARN_SIM_GRAPH_NODE_PARENTS, false) >= 21);
    assert_true(survived(TARN_SIM_ANY, true) >= 3);
    assert_true(survived(TARN_SIM_ANY, false) >= 3);
}

static void there_is_no_view_outside_of_a_capture(void **state)
{
    const struct tn_capture_view some = {.stream = MAIN};
    const struct tn_capture_view *view = &some;
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, REUSE);
    struct tn_capture_order *order = &rig_engine(rig.allocator)->waits.order;

    assert_int_equal(tn_capture_order_look(order, rig.device, MAIN, &view, &rig.error), TARN_OK);
    assert_null(view);
    capture(&rig, MAIN, true);
    view = &some;
    assert_int_equal(tn_capture_order_look(order, rig.device, MAIN, &view, &rig.error), TARN_OK);
    assert_null(view); /* nothing was captured yet */
    work(&rig, MAIN);
    assert_int_equal(tn_capture_order_look(order, rig.device, MAIN, &view, &rig.error), TARN_OK);
    assert_non_null(view);
    assert_int_equal(view->stream, MAIN);
    const uint64_t first = view->capture;

    work(&rig, MAIN);
    assert_int_equal(tn_capture_order_look(order, rig.device, MAIN, &view, &rig.error), TARN_OK);
    assert_int_equal(view->seen.count, 2);
    capture(&rig, MAIN, false);
    assert_int_equal(tn_capture_order_look(order, rig.device, MAIN, &view, &rig.error), TARN_OK);
    assert_null(view);
    capture(&rig, MAIN, true); /* another one, whose view begins with nothing */
    work(&rig, MAIN);
    assert_int_equal(tn_capture_order_look(order, rig.device, MAIN, &view, &rig.error), TARN_OK);
    assert_int_not_equal(view->capture, first);
    assert_int_equal(view->seen.count, 1);
    capture(&rig, MAIN, false);
    rig_close(&rig);
}

/* A block that goes to and fro, each time with the same work before it. */
static void a_block_comes_back_each_time(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    const tarn_ptr x = rig_alloc(&rig, SIZE, MAIN);

    join(&rig, SIDE, MAIN);
    for (int i = 0; i < 5; i++) {
        rig_record(&rig, x, SIDE);
        rig_free(&rig, x);
        assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    }
    capture_close(&rig);
}

/* Of a stream in a capture of its own that has no work yet. */
static void a_stream_of_another_capture_proves_nothing(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    capture(&rig, THIRD, true);
    const tarn_ptr x = rig_alloc(&rig, SIZE, MAIN);

    join(&rig, SIDE, MAIN);
    work(&rig, SIDE);
    rig_record(&rig, x, THIRD);
    rig_record(&rig, x, SIDE);
    rig_free(&rig, x);
    join(&rig, MAIN, SIDE);
    work(&rig, MAIN);
    assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture(&rig, THIRD, false);
    capture_close(&rig);
}

/* The block's own stream had no work when it was freed, the other one did. */
static void work_of_the_other_stream_alone_counts(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, 2 * GIB, REUSE);
    begin_routing(&rig, any_stream);
    capture(&rig, MAIN, true);
    join(&rig, SIDE, MAIN);
    const tarn_ptr x = rig_alloc(&rig, SIZE, MAIN);

    work(&rig, SIDE);
    rig_record(&rig, x, SIDE);
    rig_free(&rig, x);
    work(&rig, MAIN);
    assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), x);
    join(&rig, MAIN, SIDE);
    work(&rig, MAIN);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture_close(&rig);
}

/* Each stream has its own view of the graph, which is walked on. */
static void each_stream_walks_the_graph_once(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    join(&rig, THIRD, MAIN);
    work(&rig, THIRD);
    const tarn_stream streams[] = {MAIN, THIRD};

    for (int i = 0; i < 2; i++) { /* one block of each, which SIDE uses */
        const tarn_ptr ptr = rig_alloc(&rig, SIZE, streams[i]);

        join(&rig, SIDE, streams[i]);
        work(&rig, SIDE);
        rig_record(&rig, ptr, SIDE);
        rig_free(&rig, ptr);
    }
    for (int i = 0; i < 2; i++) {
        (void)rig_alloc(&rig, 512, streams[i]);
    }
    const uint64_t before = calls(&rig, TARN_SIM_GRAPH_NODE_PARENTS);

    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < 2; i++) {
            (void)rig_alloc(&rig, 512, streams[i]);
        }
    }
    assert_int_equal(calls(&rig, TARN_SIM_GRAPH_NODE_PARENTS), before);
    assert_int_equal(rig_engine(rig.allocator)->waits.order.views.count, 2);
    capture_close(&rig);
}

/* The device is asked only where a block of the stream could come back. */
static void what_cannot_come_back_costs_no_call(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, "");
    (void)freed_on_side(&rig); /* without marks */
    rig_configure(&rig, REUSE);
    (void)rig_alloc(&rig, SIZE, MAIN);
    assert_int_equal(calls(&rig, TARN_SIM_CAPTURE_INFO), 0);
    (void)freed_on_side(&rig); /* with */
    const uint64_t before = calls(&rig, TARN_SIM_CAPTURE_INFO);

    (void)rig_alloc(&rig, SIZE, SIDE);
    (void)rig_alloc(&rig, SIZE, STRANGER);
    assert_int_equal(calls(&rig, TARN_SIM_CAPTURE_INFO), before);
    capture_close(&rig);
}

/* The capture is over, the routing is not: nothing is proven any more. */
static void without_a_capture_nothing_comes_back(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    const tarn_ptr x = freed_on_side(&rig);

    join(&rig, MAIN, SIDE);
    capture(&rig, MAIN, false);
    assert_int_not_equal(rig_alloc(&rig, SIZE, MAIN), x);
    end_routing(&rig);
    rig_close(&rig);
}

/* A block that came back has no uses: later it waits for the streams that it meets then. */
static void uses_are_forgotten_when_a_block_comes_back(void **state)
{
    struct rig rig;

    (void)state;
    capture_open(&rig, REUSE);
    const tarn_ptr x = freed_on_side(&rig);

    join(&rig, MAIN, SIDE);
    assert_int_equal(rig_alloc(&rig, SIZE, MAIN), x);
    capture(&rig, MAIN, false);
    end_routing(&rig);
    rig_record(&rig, x, STRANGER);
    assert_int_equal(tarn_sim_block_stream(rig.device, SIDE), TARN_OK);
    rig_free(&rig, x);
    assert_int_equal(calls(&rig, TARN_SIM_EVENT_RECORD), 1);
    rig_free(&rig, rig_alloc(&rig, 512, MAIN));
    assert_int_equal(rig_now(&rig, TARN_STAT_ACTIVE), 0);
    assert_int_equal(tarn_sim_unblock_stream(rig.device, SIDE), TARN_OK);
    rig_close(&rig);
}

/* How many allocations of the host, each of which fails once, end a request that walks a graph. */
static unsigned failures_of_a_walk(int nodes)
{
    unsigned failures = 0;
    bool failed = true;

    for (uint64_t n = 1; failed; n++) {
        struct rig rig;
        tarn_ptr y = 0;

        capture_open(&rig, REUSE);
        for (int i = 0; i < nodes; i++) {
            work(&rig, MAIN);
        }
        const tarn_ptr x = freed_on_side(&rig);

        join(&rig, MAIN, SIDE);
        const uint64_t before = tarn_host_get_usage().alloc_calls;

        tarn_host_fail_nth(n);
        const enum tarn_status st = try_alloc(&rig, &y);

        tarn_host_fail_nth(0);
        failed = tarn_host_get_usage().alloc_calls - before >= n;
        assert_true(st == TARN_OK || (failed && st == TARN_ERR_HOST_MEMORY));
        failures += st != TARN_OK;
        rig_check(&rig);
        assert_int_equal(st ? try_alloc(&rig, &y) : TARN_OK, TARN_OK);
        assert_int_equal(y, x);
        capture_close(&rig);
    }
    return failures;
}

/* A long walk needs more memory on its way, and says when there is none. */
static void a_walk_without_host_memory_is_reported(void **state)
{
    (void)state;
    assert_true(failures_of_a_walk(200) > failures_of_a_walk(2) + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_no_view_outside_of_a_capture),
        cmocka_unit_test(a_block_comes_back_when_the_other_stream_is_joined),
        cmocka_unit_test(a_block_comes_back_when_all_streams_are_joined),
        cmocka_unit_test(a_block_comes_back_before_others_are_used),
        cmocka_unit_test(no_event_is_queried_in_a_capture),
        cmocka_unit_test(without_the_setting_it_waits_for_the_end),
        cmocka_unit_test(the_setting_may_change_in_a_capture),
        cmocka_unit_test(other_streams_do_not_ask_for_it),
        cmocka_unit_test(uses_outside_of_the_capture_prove_nothing),
        cmocka_unit_test(nothing_captured_proves_nothing),
        cmocka_unit_test(after_the_capture_marks_mean_nothing),
        cmocka_unit_test(marks_are_of_one_capture),
        cmocka_unit_test(the_stream_need_not_be_routed),
        cmocka_unit_test(blocks_come_back_in_the_order_of_their_frees),
        cmocka_unit_test(each_node_is_asked_about_once),
        cmocka_unit_test(many_streams_take_part),
        cmocka_unit_test(what_was_walked_goes_with_the_routing),
        cmocka_unit_test(every_failure_can_be_tried_again),
        cmocka_unit_test(a_block_comes_back_each_time),
        cmocka_unit_test(a_stream_of_another_capture_proves_nothing),
        cmocka_unit_test(work_of_the_other_stream_alone_counts),
        cmocka_unit_test(each_stream_walks_the_graph_once),
        cmocka_unit_test(what_cannot_come_back_costs_no_call),
        cmocka_unit_test(without_a_capture_nothing_comes_back),
        cmocka_unit_test(uses_are_forgotten_when_a_block_comes_back),
        cmocka_unit_test(a_walk_without_host_memory_is_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
