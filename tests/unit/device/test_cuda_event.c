/* SPDX-License-Identifier: MIT */
/* Events of a GPU, and the flags that answer for the driver once events are asked often. */
#include "support/test.h"

#include "support/cuda.h"
#include "support/used_memory.h"
#include "tarn/host.h"
#include "tarn/sim.h"

#include <string.h>

static const struct fake_cuda *fake;
static struct tarn_device *device;
static tarn_stream stream;

static int setup(void **state)
{
    (void)state;
    fake = fake_open(FAKE_CUDA);
    device = cuda_open();
    return device->ops->stream_create(device, &stream) != TARN_OK;
}

static int teardown(void **state)
{
    (void)state;
    tarn_device_close(device);
    return fake->spoiled() || tarn_host_get_usage().live_bytes != 0;
}

static tn_event_handle event_make(void)
{
    tn_event_handle event = 0;

    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
    return event;
}

static void record(tn_event_handle event)
{
    assert_int_equal(device->ops->event_record(device, event, stream), TARN_OK);
}

static enum tarn_status query(tn_event_handle event)
{
    return device->ops->event_query(device, event);
}

/* Records the event on a stream that is blocked, and asks so many times. */
static void ask_in_vain(tn_event_handle event, int times)
{
    assert_true(fake->block(0, stream));
    record(event);
    for (int i = 0; i < times; i++) {
        assert_int_equal(query(event), TARN_ERR_NOT_READY);
    }
}

static void finish(tn_event_handle event)
{
    assert_true(fake->unblock(0, stream));
    assert_int_equal(query(event), TARN_OK);
}

/* Nobody asks until events have no flags. */
static void make_flags_end(tn_event_handle event)
{
    for (int i = 0; i < TN_CUDA_FLAGS_TRIED; i++) {
        record(event);
        assert_int_equal(query(event), TARN_OK);
    }
}

/* From here on events have flags. */
static void make_flags_pay(tn_event_handle event)
{
    ask_in_vain(event, 50);
    finish(event);
}

static uint64_t questions(void)
{
    return fake->calls("cuEventQuery");
}

static uint64_t writes(void)
{
    return fake->calls("cuStreamWriteValue32_v2");
}

static void rarely_asked_events_have_no_flags(void **state)
{
    const tn_event_handle event = event_make();

    (void)state;
    make_flags_end(event);
    const uint64_t before = questions();
    const uint64_t tried = writes();
    for (int i = 0; i < 100; i++) {
        ask_in_vain(event, TN_CUDA_FLAG_WORTH);
        finish(event);
    }
    assert_string_equal(device->ops->last_error(device), ""); /* "not ready" is no failure */
    assert_int_equal(tried, TN_CUDA_FLAGS_TRIED);
    assert_int_equal(writes(), tried);
    assert_int_equal(questions() - before, 100 * (TN_CUDA_FLAG_WORTH + 1));
}

static void flags_answer_for_the_driver(void **state)
{
    const tn_event_handle event = event_make();

    (void)state;
    make_flags_end(event);
    make_flags_pay(event);
    const uint64_t before = questions();
    const uint64_t written = writes();
    ask_in_vain(event, 10 * TN_CUDA_ASK_DRIVER);
    assert_int_equal(writes(), written + 1);
    assert_int_equal(questions() - before, 10);
    finish(event);
    assert_int_equal(query(event), TARN_OK);
    assert_int_equal(questions() - before, 10);
}

/* One question in so many goes to the driver, and it counts like the others. */
static void the_driver_is_asked_now_and_then(void **state)
{
    const tn_event_handle event = event_make();

    (void)state;
    make_flags_end(event);
    make_flags_pay(event);
    const uint64_t before = questions();
    ask_in_vain(event, 2 * TN_CUDA_ASK_DRIVER - 1);
    assert_int_equal(questions() - before, 1);
    assert_int_equal(query(event), TARN_ERR_NOT_READY);
    assert_int_equal(questions() - before, 2);
    finish(event);
}

/* The balance is of all events: what one recording was asked counts for the next of another. */
static void recordings_count_as_soon_as_they_are_over(void **state)
{
    const tn_event_handle first = event_make();
    const tn_event_handle second = event_make();

    (void)state;
    for (int i = 0; i <= TN_CUDA_FLAGS_TRIED; i++) {
        const tn_event_handle event = event_make();

        record(event);
        assert_int_equal(query(event), TARN_OK); /* by its flag */
    }
    assert_int_equal(writes(), TN_CUDA_FLAGS_TRIED);
    make_flags_pay(first); /* without a flag: the driver says when it is over */
    assert_int_equal(writes(), TN_CUDA_FLAGS_TRIED);
    record(second);
    assert_int_equal(writes(), TN_CUDA_FLAGS_TRIED + 1);
}

/* What flags spare is questions that are answered "not ready". */
static void errors_are_no_questions(void **state)
{
    const tn_event_handle first = event_make();
    const tn_event_handle second = event_make();

    (void)state;
    make_flags_end(first);
    ask_in_vain(first, 0);
    for (int i = 0; i < 50; i++) {
        fake->fail_nth("cuEventQuery", 1, TN_CU_INVALID_VALUE);
        assert_int_equal(query(first), TARN_ERR_DEVICE);
    }
    finish(first);
    record(second);
    assert_int_equal(writes(), TN_CUDA_FLAGS_TRIED);
}

static void recordings_that_nobody_asks_for_end_flags_too(void **state)
{
    const tn_event_handle event = event_make();

    (void)state;
    make_flags_pay(event);
    for (int i = 0; i < 2 * TN_CUDA_BALANCE_MAX; i++) {
        record(event);
    }
    assert_in_range(writes(), 2, TN_CUDA_BALANCE_MAX);
}

/* However much was asked before, flags end soon when nobody asks any more. */
static void much_asking_is_forgotten(void **state)
{
    const tn_event_handle event = event_make();

    (void)state;
    for (int i = 0; i < 20; i++) {
        ask_in_vain(event, 2 * TN_CUDA_BALANCE_MAX);
        finish(event);
    }
    const uint64_t written = writes();
    for (int i = 0; i < 2 * TN_CUDA_BALANCE_MAX; i++) {
        record(event);
        assert_int_equal(query(event), TARN_OK);
    }
    assert_in_range(writes() - written, 1, TN_CUDA_BALANCE_MAX / TN_CUDA_FLAG_WORTH + 1);
}

/* However long nobody asked, two recordings that are asked often bring the flags back. */
static void long_silence_is_forgotten(void **state)
{
    const tn_event_handle event = event_make();

    (void)state;
    for (int i = 0; i < 4 * TN_CUDA_BALANCE_MAX; i++) {
        record(event);
        assert_int_equal(query(event), TARN_OK);
    }
    for (int i = 0; i < 2; i++) {
        ask_in_vain(event, TN_CUDA_BALANCE_MAX);
        finish(event);
    }
    const uint64_t written = writes();
    record(event);
    assert_int_equal(writes(), written + 1);
}

/* Whatever the memory of the flags held before. */
static void flags_begin_unset(void **state)
{
    tarn_device_close(device);
    used_memory_begin();
    device = cuda_open();
    assert_int_equal(device->ops->stream_create(device, &stream), TARN_OK);
    const tn_event_handle event = event_make();

    ask_in_vain(event, 1);
    assert_int_equal(writes(), 1);
    const uint64_t before = questions();
    finish(event);
    assert_int_equal(questions(), before); /* the flag said so */
    tarn_device_close(device);
    used_memory_end();
    assert_int_equal(setup(state), 0);
}

/* A failed recording leaves the last one as it was, flag and all. */
static void a_failed_recording_changes_nothing(void **state)
{
    const tn_event_handle event = event_make();

    (void)state;
    make_flags_pay(event);
    ask_in_vain(event, 1);
    const uint64_t before = questions();
    fake->fail_nth("cuEventRecord", 1, TN_CU_OUT_OF_MEMORY);
    assert_int_equal(device->ops->event_record(device, event, stream), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(query(event), TARN_ERR_NOT_READY);
    assert_int_equal(questions(), before); /* the flag still answers */
    finish(event);
}

static void flags_end_when_nobody_asks(void **state)
{
    const tn_event_handle event = event_make();

    (void)state;
    make_flags_pay(event);
    for (int i = 0; i < 2 * TN_CUDA_BALANCE_MAX; i++) {
        record(event);
        assert_int_equal(query(event), TARN_OK);
    }
    assert_in_range(writes(), 2, TN_CUDA_BALANCE_MAX);
}

/* The flag tells of the last recording alone. */
static void an_event_may_be_recorded_again_before_it_is_done(void **state)
{
    const tn_event_handle event = event_make();
    const tarn_stream first = stream;
    tarn_stream second = 0;

    (void)state;
    assert_int_equal(device->ops->stream_create(device, &second), TARN_OK);
    make_flags_pay(event);
    ask_in_vain(event, 1);
    assert_true(fake->block(0, second));
    stream = second;
    const uint64_t written = writes();
    record(event);
    assert_int_equal(writes(), written); /* not while one is queued */
    assert_true(fake->unblock(0, first));
    assert_int_equal(query(event), TARN_ERR_NOT_READY);
    finish(event);
}

static void an_error_is_found_behind_a_flag(void **state)
{
    const tn_event_handle event = event_make();
    int asked = 0;

    (void)state;
    make_flags_pay(event);
    ask_in_vain(event, 1);
    fake->fail_nth("cuEventQuery", 1, TN_CU_ILLEGAL_ADDRESS);
    while (query(event) == TARN_ERR_NOT_READY) {
        asked++;
    }
    assert_in_range(asked, 0, TN_CUDA_ASK_DRIVER);
    assert_non_null(strstr(device->ops->last_error(device), "cuEventQuery"));
    finish(event);
}

static void each_step_to_a_flag_may_fail(void **state)
{
    static const char *const steps[] = {"cuMemHostRegister_v2", "cuMemHostGetDevicePointer_v2",
                                        "cuStreamIsCapturing", "cuStreamWriteValue32_v2"};

    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        const tn_event_handle event = event_make();

        fake->fail_nth(steps[i], 1, TN_CU_OUT_OF_MEMORY);
        ask_in_vain(event, 3);
        assert_int_equal(writes(), i == 3); /* which failed */
        finish(event);
        make_flags_pay(event);
        /* There are no flags without memory, which is tried for once, and none for a while where a
         * write failed. */
        assert_int_equal(writes(), i >= 2);
        assert_int_equal(fake->calls("cuMemHostRegister_v2"), 1);
        assert_int_equal(fake->calls("cuMemHostUnregister"), i == 1);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(setup(state), 0);
    }
    const tn_event_handle event = event_make();

    tarn_host_fail_nth(1);
    ask_in_vain(event, 3);
    tarn_host_fail_nth(0);
    finish(event);
    assert_int_equal(writes(), 0);
}

static void an_old_driver_has_no_flags(void **state)
{
    tarn_device_close(device);
    fake = fake_open(FAKE_CUDA_10);
    device = cuda_open_at(FAKE_CUDA_10, 0);
    assert_int_equal(device->ops->stream_create(device, &stream), TARN_OK);
    const tn_event_handle event = event_make();

    (void)state;
    make_flags_pay(event);
    make_flags_pay(event);
    assert_int_equal(fake->calls("cuMemHostRegister_v2"), 0);
}

static void a_captured_stream_gets_no_write(void **state)
{
    const tn_event_handle event = event_make();
    const struct tn_cuda_driver *driver = &tn_cuda_from(device)->driver;
    void *context = tn_cuda_from(device)->context;
    void *graph = NULL;

    (void)state;
    make_flags_pay(event);
    assert_int_equal(driver->cuCtxPushCurrent_v2(context), TN_CU_SUCCESS);
    assert_int_equal(driver->cuStreamBeginCapture_v2(stream, TN_CU_CAPTURE_MODE_RELAXED),
                     TN_CU_SUCCESS);
    const uint64_t written = writes();
    record(event);
    assert_int_equal(writes(), written);
    assert_int_equal(driver->cuStreamEndCapture(stream, &graph), TN_CU_SUCCESS);
    assert_int_equal(driver->cuGraphDestroy(graph), TN_CU_SUCCESS);
    assert_int_equal(driver->cuCtxPopCurrent_v2(&context), TN_CU_SUCCESS);
}

/* More events than flags, in slots that are used again. */
static void there_may_be_many_events(void **state)
{
    enum {
        MANY = 3 * TN_CUDA_FLAGS
    };
    static tn_event_handle events[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        events[i] = event_make();
    }
    make_flags_pay(events[0]);
    const uint64_t written = writes();
    record(events[TN_CUDA_FLAGS - 1]);
    assert_int_equal(writes(), written + 1);
    record(events[TN_CUDA_FLAGS]); /* the first without a flag */
    assert_int_equal(writes(), written + 1);
    for (int i = 0; i < MANY; i++) {
        record(events[i]);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(query(events[i]), TARN_OK);
        assert_int_equal(device->ops->event_destroy(device, events[i]), TARN_OK);
    }
    assert_in_range(event_make(), 1, MANY);
}

/* Places are used again, all of them, also those of events that were not made in the end. */
static void places_of_events_are_used_again(void **state)
{
    tn_event_handle events[TN_CUDA_EVENTS_FIRST];
    uint64_t bytes = 0;

    (void)state;
    for (int i = 0; i < TN_CUDA_EVENTS_FIRST; i++) {
        tn_event_handle none = 7;

        fake->fail_nth("cuEventCreate", 1, TN_CU_OUT_OF_MEMORY);
        assert_int_equal(device->ops->event_create(device, &none), TARN_ERR_OUT_OF_MEMORY);
        assert_int_equal(none, 7);
        events[i] = event_make();
        bytes = i == 0 ? tarn_host_get_usage().live_bytes : bytes;
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, bytes);
    for (int i = 0; i < TN_CUDA_EVENTS_FIRST; i++) {
        record(events[i]);
        assert_int_equal(query(events[i]), TARN_OK);
    }
    bytes = tarn_host_get_usage().live_bytes; /* with that of the flags */
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TN_CUDA_EVENTS_FIRST; i++) {
            assert_int_equal(device->ops->event_destroy(device, events[i]), TARN_OK);
        }
        for (int i = 0; i < TN_CUDA_EVENTS_FIRST; i++) {
            events[i] = event_make();
        }
    }
    assert_int_equal(tarn_host_get_usage().live_bytes, bytes);
    (void)event_make();
    assert_true(tarn_host_get_usage().live_bytes > bytes); /* there was no place left */
}

static void events_need_host_memory_now_and_then(void **state)
{
    enum {
        MANY = 1000
    };
    static tn_event_handle events[MANY];
    int failures = 0;

    (void)state;
    for (int i = 0; i < MANY; i++) {
        tarn_host_fail_nth(1);
        const enum tarn_status st = device->ops->event_create(device, &events[i]);

        tarn_host_fail_nth(0);
        if (st) {
            assert_int_equal(st, TARN_ERR_HOST_MEMORY);
            failures++;
            events[i] = event_make();
        }
    }
    assert_in_range(failures, 1, 20);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(device->ops->event_destroy(device, events[i]), TARN_OK);
    }
}

/* After four thousand million of them. */
static void handles_are_limited(void **state)
{
    struct tn_cuda_events *events = &tn_cuda_from(device)->events;
    struct tn_cuda_event any;
    tn_event_handle event = 7;

    (void)state;
    for (int i = 0; i < TN_CUDA_EVENT_CHUNKS; i++) {
        assert_null(events->chunks[i]);
        events->chunks[i] = &any;
    }
    assert_int_equal(device->ops->event_create(device, &event), TARN_ERR_HOST_MEMORY);
    assert_int_equal(event, 7);
    for (int i = 0; i < TN_CUDA_EVENT_CHUNKS; i++) {
        events->chunks[i] = NULL;
    }
    assert_int_equal(device->ops->event_create(device, &event), TARN_OK);
}

/* Here already: the driver is not asked. */
static void expect_unknown(enum tarn_status st)
{
    assert_int_equal(st, TARN_ERR_DEVICE);
    if (strncmp(device->ops->last_error(device), "there is no event ", 18) != 0) {
        fail_msg("%s", device->ops->last_error(device));
    }
}

static void an_unknown_event_is_refused(void **state)
{
    const tn_event_handle event = event_make();
    const tn_event_handle wrong[] = {0, event + 1, UINT64_MAX, event};

    (void)state;
    assert_int_equal(device->ops->event_destroy(device, event), TARN_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        expect_unknown(query(wrong[i]));
        expect_unknown(device->ops->event_record(device, wrong[i], stream));
        expect_unknown(device->ops->event_wait(device, wrong[i]));
        expect_unknown(device->ops->event_destroy(device, wrong[i]));
        expect_unknown(device->ops->stream_wait_event(device, stream, wrong[i]));
    }
}

/* Memory into which a write is still queued is not given back before: the fake driver would say
 * that it was spoiled. */
static void closing_waits_for_queued_writes(void **state)
{
    for (int queued = 0; queued < 2; queued++) {
        const tn_event_handle event = event_make();

        ask_in_vain(event, 1);
        if (!queued) {
            finish(event);
        }
        assert_int_equal(writes(), 1);
        assert_int_equal(device->ops->event_destroy(device, event), TARN_OK);
        assert_int_equal(teardown(state), 0);
        assert_int_equal(fake->calls("cuCtxSynchronize"), queued); /* only where there is one */
        assert_int_equal(fake->calls("cuMemHostUnregister"), 1);
        assert_int_equal(setup(state), 0);
    }
}

static void a_driver_that_shut_down_sets_no_flag(void **state)
{
    const tn_event_handle event = event_make();
    int asked = 0;

    (void)state;
    make_flags_pay(event);
    ask_in_vain(event, 1);
    fake->shut_down(true);
    while (query(event) == TARN_ERR_NOT_READY) {
        asked++;
    }
    assert_in_range(asked, 0, TN_CUDA_ASK_DRIVER);
    assert_int_equal(device->ops->event_destroy(device, event), TARN_OK);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(rarely_asked_events_have_no_flags),
        CASE(flags_answer_for_the_driver),
        CASE(the_driver_is_asked_now_and_then),
        CASE(recordings_count_as_soon_as_they_are_over),
        CASE(errors_are_no_questions),
        CASE(recordings_that_nobody_asks_for_end_flags_too),
        CASE(much_asking_is_forgotten),
        CASE(long_silence_is_forgotten),
        CASE(flags_begin_unset),
        CASE(a_failed_recording_changes_nothing),
        CASE(flags_end_when_nobody_asks),
        CASE(an_event_may_be_recorded_again_before_it_is_done),
        CASE(an_error_is_found_behind_a_flag),
        CASE(each_step_to_a_flag_may_fail),
        CASE(an_old_driver_has_no_flags),
        CASE(a_captured_stream_gets_no_write),
        CASE(there_may_be_many_events),
        CASE(places_of_events_are_used_again),
        CASE(events_need_host_memory_now_and_then),
        CASE(handles_are_limited),
        CASE(an_unknown_event_is_refused),
        CASE(closing_waits_for_queued_writes),
        CASE(a_driver_that_shut_down_sets_no_flag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
