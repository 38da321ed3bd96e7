/* SPDX-License-Identifier: MIT */
/* Marks of streams: which epoch is done, whatever the order in which events complete. */
#include "support/test.h"

#include "support/rig.h"
#include "tarn/pool.h"

static struct tn_stream_order *order_of(struct rig *rig)
{
    return &rig_engine(rig->allocator)->compact.order;
}

static void open_order(struct rig *rig)
{
    rig_open_manual(rig, GIB, "policy:compact");
    assert_int_equal(order_of(rig)->epoch, 0);
}

/* Completes the n-th mark that is left of a stream. */
static void complete(struct rig *rig, tarn_stream stream, unsigned n)
{
    const struct tn_order_stream *streams = order_of(rig)->streams.items;

    for (size_t i = 0; i < order_of(rig)->streams.count; i++) {
        if (streams[i].stream == stream) {
            assert_true(n < streams[i].count);
            assert_int_equal(tarn_sim_complete_event(rig->device, streams[i].marks[n].event),
                             TARN_OK);
            return;
        }
    }
    fail();
}

static void marks_end_epochs(void **state)
{
    struct rig rig;

    (void)state;
    open_order(&rig);
    struct tn_stream_order *order = order_of(&rig);

    assert_int_equal(tn_order_marked(order, 5), -1);
    assert_int_equal(tn_order_done(order, 5), -1);
    assert_int_equal(tn_order_poll(order, 5), -1);
    for (int i = 0; i < TN_ORDER_MARKS; i++) {
        tn_order_mark(order, 5);
        assert_int_equal(order->epoch, i + 1);
        assert_int_equal(tn_order_marked(order, 5), i);
        assert_int_equal(tn_order_poll(order, 5), -1);
        rig_check(&rig); /* all pools are in that epoch */
    }
    tn_order_mark(order, 5); /* has no room */
    assert_int_equal(order->epoch, TN_ORDER_MARKS);
    assert_int_equal(tn_order_marked(order, 5), TN_ORDER_MARKS - 1);
    complete(&rig, 5, 1); /* the oldest is not */
    assert_int_equal(tn_order_poll(order, 5), -1);
    complete(&rig, 5, 0);
    assert_int_equal(tn_order_done(order, 5), -1); /* until somebody looks */
    assert_int_equal(tn_order_poll(order, 5), 1);
    assert_int_equal(tn_order_done(order, 5), 1);
    assert_int_equal(tn_order_marked(order, 5), TN_ORDER_MARKS - 1);
    complete(&rig, 5, 0);
    complete(&rig, 5, 1);
    assert_int_equal(tn_order_poll(order, 5), TN_ORDER_MARKS - 1);
    assert_int_equal(tn_order_marked(order, 5), TN_ORDER_MARKS - 1); /* though no mark is left */
    tn_order_mark(order, 5);
    assert_int_equal(tn_order_marked(order, 5), TN_ORDER_MARKS);
    assert_int_equal(sim_counters(rig.device).calls[TARN_SIM_EVENT_CREATE], TN_ORDER_MARKS);
    rig_close(&rig);
}

/* A stream without marks has nothing that others know to be done; one may get none. */
static void streams_without_marks_are_unknown(void **state)
{
    struct rig rig;

    (void)state;
    open_order(&rig);
    struct tn_stream_order *order = order_of(&rig);

    tn_order_taken(order, 77);
    tn_order_needs(order, 77);
    assert_false(tn_order_takes_turns(order, 77));
    assert_int_equal(tn_order_marked(order, 77), -1);
    tarn_host_fail_nth(1);
    tn_order_mark(order, 77);
    tarn_host_fail_nth(0);
    assert_int_equal(tn_order_marked(order, 77), -1);
    assert_int_equal(order->epoch, 0);
    tn_order_mark(order, 77);
    assert_int_equal(tn_order_marked(order, 77), 0);
    tn_order_taken(order, 77);
    assert_false(tn_order_takes_turns(order, 77));
    tn_order_needs(order, 77);
    assert_true(tn_order_takes_turns(order, 77));
    rig_close(&rig);
}

static void streams_are_apart(void **state)
{
    static const tarn_stream streams[] = {9, 3, 7, 1, 5};
    struct rig rig;

    (void)state;
    open_order(&rig);
    struct tn_stream_order *order = order_of(&rig);

    for (int i = 0; i < 5; i++) {
        tn_order_mark(order, streams[i]);
    }
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tn_order_marked(order, streams[i]), i);
        assert_int_equal(tn_order_marked(order, streams[i] + 1), -1);
        complete(&rig, streams[i], 0);
        assert_int_equal(tn_order_poll(order, streams[i]), i);
    }
    assert_int_equal(tn_order_marked(order, 0), -1);
    rig_close(&rig);
}

/* Pools of every kind are in the epoch, also those that come later. */
static void pools_follow(void **state)
{
    const struct tarn_pool_options options = {.struct_size = sizeof options};
    struct tarn_pool *first = NULL;
    struct tarn_pool *second = NULL;
    struct rig rig;

    (void)state;
    open_order(&rig);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &first, &rig.error), TARN_OK);
    tn_order_mark(order_of(&rig), 1);
    rig_check(&rig);
    assert_int_equal(tarn_pool_create(rig.allocator, &options, &second, &rig.error), TARN_OK);
    rig_check(&rig);
    tn_order_mark(order_of(&rig), 2);
    rig_check(&rig);
    tarn_pool_destroy(first);
    tarn_pool_destroy(second);
    rig_close(&rig);
}

/* A stream waits on the device; the event is used again. */
static void waiting_takes_an_event_for_a_moment(void **state)
{
    struct rig rig;

    (void)state;
    open_order(&rig);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tn_order_wait(order_of(&rig), 1, 2, &rig.error), TARN_OK);
    }
    const struct tarn_sim_counters counters = sim_counters(rig.device);

    assert_int_equal(counters.calls[TARN_SIM_EVENT_CREATE], 1);
    assert_int_equal(counters.calls[TARN_SIM_EVENT_RECORD], 3);
    assert_int_equal(counters.calls[TARN_SIM_STREAM_WAIT_EVENT], 3);
    assert_int_equal(order_of(&rig)->events.count, 1);
    rig_close(&rig);
}

static void failures_change_nothing(void **state)
{
    static const struct {
        enum tarn_sim_call call;
        const char *text;
    } rows[] = {{TARN_SIM_EVENT_CREATE, "creating an event"},
                {TARN_SIM_EVENT_RECORD, "recording an event"}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;

        open_order(&rig);
        struct tn_stream_order *order = order_of(&rig);

        tarn_sim_fail_nth(rig.device, rows[i].call, 1, TARN_ERR_DEVICE);
        assert_int_equal(tn_order_wait(order, 1, 2, &rig.error), TARN_ERR_DEVICE);
        assert_non_null(strstr(rig.error.text, rows[i].text));
        tarn_sim_fail_nth(rig.device, rows[i].call, 1, TARN_ERR_DEVICE);
        tn_order_mark(order, 1);
        assert_int_equal(order->epoch, 0);
        tn_order_mark(order, 1);
        assert_int_equal(order->epoch, 1);
        assert_int_equal(tn_order_marked(order, 1), 0);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_end_epochs),
        cmocka_unit_test(streams_without_marks_are_unknown),
        cmocka_unit_test(streams_are_apart),
        cmocka_unit_test(pools_follow),
        cmocka_unit_test(waiting_takes_an_event_for_a_moment),
        cmocka_unit_test(failures_change_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
