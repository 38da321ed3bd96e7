/* SPDX-License-Identifier: MIT */
/* Streams, events and virtual time, through the device's table. */
#include "support/test.h"

#include "support/sim.h"
#include "support/used_memory.h"

#include <string.h>

enum {
    S1 = 17,
    S2 = 0x7fff1234
};

static tn_event_handle record(struct tarn_device *device, tarn_stream stream)
{
    tn_event_handle event = 0;

    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
    assert_int_equal(device->ops->event_record(device, event, stream), TARN_OK);
    return event;
}

static bool is_done(struct tarn_device *device, tn_event_handle event)
{
    const enum tarn_status st = device->ops->event_query(device, event);

    assert_true(st == TARN_OK || st == TARN_ERR_NOT_READY);
    return st == TARN_OK;
}

static void events_complete_when_their_work_is_done(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    const tn_event_handle idle = record(device, S1);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    const tn_event_handle first = record(device, S1);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 50), TARN_OK);
    const tn_event_handle second = record(device, S1);
    const tn_event_handle other = record(device, S2);
    assert_true(is_done(device, idle));
    assert_true(is_done(device, other));
    tarn_sim_advance_ns(device, 99);
    assert_false(is_done(device, first));
    tarn_sim_advance_ns(device, 1);
    assert_true(is_done(device, first));
    assert_false(is_done(device, second));
    tarn_sim_advance_ns(device, 50);
    assert_true(is_done(device, second));
    assert_int_equal(device->ops->now_ns(device), 150);
    assert_int_equal(sim_counters(device).live_events, 4);
    assert_int_equal(sim_counters(device).failures, 0); /* "not ready" is none */
    sim_close(device);
}

static void work_on_an_idle_stream_starts_now(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 10), TARN_OK);
    tarn_sim_advance_ns(device, 1000);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 10), TARN_OK);
    const tn_event_handle event = record(device, S1);
    tarn_sim_advance_ns(device, 9);
    assert_false(is_done(device, event));
    tarn_sim_advance_ns(device, 1);
    assert_true(is_done(device, event));
    sim_close(device);
}

static void waits_move_the_clock(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    const tn_event_handle event = record(device, S1);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    assert_int_equal(device->ops->event_wait(device, event), TARN_OK);
    assert_int_equal(tarn_sim_now_ns(device), 100);
    assert_true(is_done(device, event));
    assert_int_equal(device->ops->event_wait(device, event), TARN_OK);
    assert_int_equal(device->ops->stream_wait(device, S1), TARN_OK);
    assert_int_equal(tarn_sim_now_ns(device), 200);
    assert_int_equal(device->ops->stream_wait(device, 12345), TARN_OK);
    assert_int_equal(tarn_sim_now_ns(device), 200);
    sim_close(device);
}

static void blocked_work_ends_when_unblocked(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    const tn_event_handle before = record(device, S1);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 30), TARN_OK);
    const tn_event_handle first = record(device, S1);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    const tn_event_handle second = record(device, S1);
    tarn_sim_advance_ns(device, 1000);
    assert_true(is_done(device, before));
    assert_false(is_done(device, first));
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_OK);
    tarn_sim_advance_ns(device, 29);
    assert_false(is_done(device, first));
    tarn_sim_advance_ns(device, 1);
    assert_true(is_done(device, first));
    assert_false(is_done(device, second));
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_OK);
    assert_true(is_done(device, second));
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_ERR_STATE);
    sim_close(device);
}

static void unblocking_early_waits_for_the_work_before(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    const tn_event_handle event = record(device, S1);
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_OK);
    tarn_sim_advance_ns(device, 99);
    assert_false(is_done(device, event));
    tarn_sim_advance_ns(device, 1);
    assert_true(is_done(device, event));
    sim_close(device);
}

static void waits_end_blocking_work_and_count_it(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    const tn_event_handle event = record(device, S1);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 7), TARN_OK);
    assert_int_equal(device->ops->event_wait(device, event), TARN_OK);
    assert_int_equal(sim_counters(device).forced_unblocks, 1);
    assert_int_equal(device->ops->stream_wait(device, S1), TARN_OK);
    assert_int_equal(sim_counters(device).forced_unblocks, 2);
    assert_int_equal(tarn_sim_now_ns(device), 7);
    sim_close(device);
}

static void recording_again_moves_the_event(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    const tn_event_handle event = record(device, S1);
    assert_false(is_done(device, event));
    assert_int_equal(device->ops->event_record(device, event, S2), TARN_OK);
    assert_true(is_done(device, event));
    sim_close(device);
}

static void event_names_are_checked(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    tn_event_handle event = 0;
    tn_event_handle again = 0;

    (void)state;
    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
    assert_int_equal(device->ops->event_query(device, event), TARN_OK); /* never recorded */
    assert_int_equal(device->ops->event_wait(device, event), TARN_OK);
    assert_int_equal(tarn_sim_complete_event(device, event), TARN_ERR_NOT_FOUND);
    assert_int_equal(device->ops->event_destroy(device, event), TARN_OK);
    assert_int_equal(device->ops->event_destroy(device, event), TARN_ERR_DEVICE);
    assert_non_null(strstr(device->ops->last_error(device), "no event"));
    assert_int_equal(device->ops->event_create(device, &again), TARN_OK);
    assert_true(again != event);
    assert_int_equal(device->ops->event_record(device, event, S1), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->event_query(device, event), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->event_wait(device, 0), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->event_query(device, UINT64_MAX), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->event_destroy(device, again), TARN_OK);
    assert_int_equal(sim_counters(device).live_events, 0);
    sim_close(device);
}

static void many_events_keep_their_state(void **state)
{
    enum {
        EVENTS = 300
    };
    struct tarn_device *device = sim_open(GIB);
    tn_event_handle event[EVENTS];

    (void)state;
    for (int i = 0; i < EVENTS; i++) {
        assert_int_equal(tarn_sim_enqueue_ns(device, S1, 1), TARN_OK);
        event[i] = record(device, S1);
    }
    for (int i = 0; i < EVENTS; i++) {
        assert_false(is_done(device, event[i]));
        tarn_sim_advance_ns(device, 1);
        assert_true(is_done(device, event[i]));
    }
    sim_close(device);
}

/* Each slot has 32 bits of a name. */
static void events_are_limited(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tn_sim_streams *streams = &tn_sim_from(device)->streams;
    const size_t slots = streams->event_slots;
    tn_event_handle event = 7;

    (void)state;
    streams->event_slots = UINT32_MAX / 2;
    streams->event_count = streams->event_slots;
    assert_int_equal(device->ops->event_create(device, &event), TARN_ERR_LIMIT);
    streams->event_slots = UINT32_MAX / 4; /* twice as many would do */
    streams->event_count = streams->event_slots;
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->event_create(device, &event), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    streams->event_slots = slots;
    streams->event_count = 0;
    assert_int_equal(event, 7);
    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
    sim_close(device);
}

/* Names begin at one, whatever the memory held before, and take no more of it than is needed. */
static void places_of_events_are_used_again(void **state)
{
    enum {
        ROUNDS = 300
    };
    struct tarn_device *device;
    uint64_t bytes = 0;

    (void)state;
    used_memory_begin();
    device = sim_open(GIB);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        const tn_event_handle event = record(device, S1);
        const tn_event_handle unused = (uint64_t)0xa5a5a5a5 << 32 | 2; /* as the memory has it */

        assert_int_equal(device->ops->event_query(device, unused), TARN_ERR_DEVICE);
        assert_int_equal(event, round << 32 | 1);
        assert_int_equal(device->ops->event_destroy(device, event), TARN_OK);
        bytes = round == 1 ? tarn_host_get_usage().live_bytes : bytes;
        assert_int_equal(tarn_host_get_usage().live_bytes, bytes);
    }
    for (uint64_t i = 2; i <= ROUNDS; i++) {
        (void)record(device, S1);
    }
    tn_event_handle last = record(device, S1);

    assert_int_equal(last, (uint64_t)1 << 32 | ROUNDS);
    for (tn_event_handle event = last - 1; event <= last; event++) { /* both of them */
        assert_int_equal(device->ops->event_destroy(device, event), TARN_OK);
    }
    for (int i = 0; i < 2; i++) {
        assert_in_range(record(device, S1) & UINT32_MAX, ROUNDS - 1, ROUNDS);
    }
    sim_close(device);
    used_memory_end();
}

static void events_of_captures_leave_no_host_memory(void **state)
{
    const uint64_t bytes = tarn_host_get_usage().live_bytes;
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_set_capturing(device, S1, true), TARN_OK);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 10), TARN_OK);
    const tn_event_handle first = record(device, S1);

    assert_int_equal(device->ops->event_destroy(device, first), TARN_OK);
    (void)record(device, S1); /* in the same place, and there to the end */
    sim_close(device);
    assert_int_equal(tarn_host_get_usage().live_bytes, bytes);
}

static void manual_events_complete_when_told(void **state)
{
    struct tarn_device *device = sim_open_with((struct tarn_sim_options){.manual_events = true});

    (void)state;
    const tn_event_handle first = record(device, S1);
    const tn_event_handle second = record(device, S1);
    const tn_event_handle third = record(device, S1);
    const tn_event_handle other = record(device, S2);
    tarn_sim_advance_ns(device, 1000);
    assert_false(is_done(device, first));
    assert_int_equal(tarn_sim_complete_event(device, third), TARN_OK);
    assert_true(is_done(device, third));
    assert_int_equal(device->ops->event_record(device, third, S1), TARN_OK);
    assert_false(is_done(device, third)); /* it is another recording */
    assert_false(is_done(device, first));
    assert_int_equal(device->ops->event_wait(device, second), TARN_OK);
    assert_true(is_done(device, first)); /* same stream, earlier */
    assert_false(is_done(device, other));
    assert_int_equal(device->ops->stream_wait(device, S2), TARN_OK);
    assert_true(is_done(device, other));
    assert_int_equal(device->ops->event_record(device, other, S2), TARN_OK);
    assert_false(is_done(device, other));
    assert_int_equal(tarn_sim_complete_event(device, 99), TARN_ERR_NOT_FOUND);
    sim_close(device);
}

struct oracle {
    uint64_t event;
    tarn_stream stream;
    unsigned calls;
};

static bool oracle_answer(void *context, uint64_t event, tarn_stream stream)
{
    struct oracle *oracle = context;

    oracle->calls++;
    return event == oracle->event && stream == oracle->stream;
}

static void oracle_decides_in_a_query(void **state)
{
    struct tarn_device *device = sim_open_with((struct tarn_sim_options){.manual_events = true});

    (void)state;
    const tn_event_handle first = record(device, S1);
    const tn_event_handle second = record(device, S1);
    struct oracle oracle = {.event = second, .stream = S1};
    tarn_sim_set_event_oracle(device, oracle_answer, &oracle);
    assert_false(is_done(device, first));
    assert_true(is_done(device, second));
    assert_int_equal(oracle.calls, 2);
    tarn_sim_set_event_oracle(device, NULL, NULL);
    assert_true(is_done(device, second)); /* stays complete */
    assert_int_equal(oracle.calls, 2);
    sim_close(device);
}

static void time_stops_at_its_end(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    tarn_sim_advance_ns(device, 10);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, UINT64_MAX), TARN_OK);
    const tn_event_handle event = record(device, S1);
    tarn_sim_advance_ns(device, 1000);
    assert_false(is_done(device, event));
    tarn_sim_advance_ns(device, UINT64_MAX);
    assert_true(is_done(device, event));
    assert_true(tarn_sim_now_ns(device) == UINT64_MAX);
    sim_close(device);
}

static void wait_event(struct tarn_device *device, tarn_stream stream, tn_event_handle event)
{
    assert_int_equal(device->ops->stream_wait_event(device, stream, event), TARN_OK);
}

static void streams_wait_for_events(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    tn_event_handle never = 0;

    (void)state;
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    const tn_event_handle event = record(device, S1);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    wait_event(device, S2, event);
    assert_int_equal(device->ops->event_destroy(device, event), TARN_OK);
    assert_int_equal(tarn_sim_enqueue_ns(device, S2, 10), TARN_OK);
    const tn_event_handle after = record(device, S2);
    assert_int_equal(device->ops->event_create(device, &never), TARN_OK);
    wait_event(device, S2, never);
    wait_event(device, S2, after); /* its own */
    tarn_sim_advance_ns(device, 109);
    assert_false(is_done(device, after));
    tarn_sim_advance_ns(device, 1);
    assert_true(is_done(device, after));
    assert_int_equal(device->ops->stream_wait_event(device, S2, event), TARN_ERR_DEVICE);
    sim_close(device);
}

/* Work before the wait is as before. */
static void only_later_work_waits(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 100), TARN_OK);
    const tn_event_handle event = record(device, S1);
    assert_int_equal(tarn_sim_block_stream(device, S2), TARN_OK);
    const tn_event_handle before = record(device, S2);
    wait_event(device, S2, event);
    const tn_event_handle after = record(device, S2);
    assert_int_equal(tarn_sim_unblock_stream(device, S2), TARN_OK);
    assert_true(is_done(device, before));
    assert_false(is_done(device, after));
    tarn_sim_advance_ns(device, 100);
    assert_true(is_done(device, after));
    sim_close(device);
}

/* What is done, and what the stream does before anyway, needs no record. */
static void only_waits_for_other_work_need_host_memory(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    const tn_event_handle done = record(device, S2);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    const tn_event_handle own = record(device, S1);
    const uint64_t calls = tarn_host_get_usage().alloc_calls;
    wait_event(device, S1, done);
    wait_event(device, S1, own);
    assert_int_equal(tarn_host_get_usage().alloc_calls, calls);
    tarn_host_fail_nth(1);
    assert_int_equal(device->ops->stream_wait_event(device, S2, own), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_true(is_done(device, record(device, S2))); /* it does not wait */
    wait_event(device, S2, own);
    assert_false(is_done(device, record(device, S2)));
    sim_close(device);
}

/* S2 waits for S1, which is held; S3 for S2. */
static void waiting_goes_through_held_streams(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    const tarn_stream s3 = 3;

    (void)state;
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    assert_int_equal(tarn_sim_enqueue_ns(device, S1, 10), TARN_OK);
    wait_event(device, S2, record(device, S1));
    assert_int_equal(tarn_sim_enqueue_ns(device, S2, 20), TARN_OK);
    wait_event(device, s3, record(device, S2));
    const tn_event_handle last = record(device, s3);
    assert_int_equal(tarn_sim_unblock_stream(device, S2), TARN_ERR_STATE); /* it waits, no work */
    tarn_sim_advance_ns(device, 1000);
    assert_false(is_done(device, last));
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_OK);
    tarn_sim_advance_ns(device, 29);
    assert_false(is_done(device, last));
    tarn_sim_advance_ns(device, 1);
    assert_true(is_done(device, last));
    assert_int_equal(sim_counters(device).forced_unblocks, 0);
    sim_close(device);
}

/* Blocking work behind a wait can be told to end before its turn. */
static void work_behind_a_wait_ends_in_its_turn(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    wait_event(device, S2, record(device, S1));
    assert_int_equal(tarn_sim_block_stream(device, S2), TARN_OK);
    const tn_event_handle last = record(device, S2);
    assert_int_equal(tarn_sim_unblock_stream(device, S2), TARN_OK);
    assert_int_equal(tarn_sim_unblock_stream(device, S2), TARN_ERR_STATE);
    assert_false(is_done(device, last));
    tarn_sim_advance_ns(device, 5);
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_OK);
    assert_true(is_done(device, last));
    sim_close(device);
}

static void waiting_for_a_waiting_stream_ends_the_work_it_waits_for(void **state)
{
    struct tarn_device *device = sim_open(GIB);

    (void)state;
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    wait_event(device, S2, record(device, S1));
    assert_int_equal(tarn_sim_block_stream(device, S2), TARN_OK);
    const tn_event_handle last = record(device, S2);
    assert_int_equal(device->ops->stream_wait(device, S2), TARN_OK);
    assert_true(is_done(device, last));
    assert_int_equal(sim_counters(device).forced_unblocks, 2);
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_ERR_STATE);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    wait_event(device, S2, record(device, S1));
    assert_int_equal(device->ops->device_wait(device), TARN_OK);
    assert_int_equal(tarn_sim_unblock_stream(device, S1), TARN_ERR_STATE);
    assert_int_equal(tarn_sim_block_stream(device, S1), TARN_OK);
    wait_event(device, S2, record(device, S1)); /* left open */
    sim_close(device);
}

static void made_streams_are_counted(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    tarn_stream a = 0;
    tarn_stream b = 0;

    (void)state;
    assert_int_equal(device->ops->stream_create(device, &a), TARN_OK);
    assert_int_equal(device->ops->stream_create(device, &b), TARN_OK);
    assert_true(a != b && a != 0 && b != 0);
    assert_int_equal(sim_counters(device).live_streams, 2);
    assert_int_equal(device->ops->stream_destroy(device, a), TARN_OK);
    assert_int_equal(device->ops->stream_destroy(device, a), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->stream_destroy(device, S1), TARN_ERR_DEVICE);
    assert_int_equal(device->ops->stream_destroy(device, b), TARN_OK);
    assert_int_equal(sim_counters(device).live_streams, 0);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_complete_when_their_work_is_done),
        cmocka_unit_test(work_on_an_idle_stream_starts_now),
        cmocka_unit_test(waits_move_the_clock),
        cmocka_unit_test(blocked_work_ends_when_unblocked),
        cmocka_unit_test(unblocking_early_waits_for_the_work_before),
        cmocka_unit_test(waits_end_blocking_work_and_count_it),
        cmocka_unit_test(recording_again_moves_the_event),
        cmocka_unit_test(event_names_are_checked),
        cmocka_unit_test(many_events_keep_their_state),
        cmocka_unit_test(events_are_limited),
        cmocka_unit_test(places_of_events_are_used_again),
        cmocka_unit_test(events_of_captures_leave_no_host_memory),
        cmocka_unit_test(manual_events_complete_when_told),
        cmocka_unit_test(oracle_decides_in_a_query),
        cmocka_unit_test(time_stops_at_its_end),
        cmocka_unit_test(streams_wait_for_events),
        cmocka_unit_test(only_later_work_waits),
        cmocka_unit_test(only_waits_for_other_work_need_host_memory),
        cmocka_unit_test(waiting_goes_through_held_streams),
        cmocka_unit_test(work_behind_a_wait_ends_in_its_turn),
        cmocka_unit_test(waiting_for_a_waiting_stream_ends_the_work_it_waits_for),
        cmocka_unit_test(made_streams_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
