/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/sim.h"
#include "tarn/stream.h"

#include <string.h>

static void streams_come_and_go(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_error error;
    tarn_stream stream = 0;
    uint64_t capture = 5;

    (void)state;
    assert_int_equal(tarn_stream_create(device, &stream, &error), TARN_OK);
    assert_int_not_equal(stream, 0);
    assert_int_equal(tarn_sim_enqueue_ns(device, stream, 1000), TARN_OK);
    assert_int_equal(tarn_stream_wait(device, stream, &error), TARN_OK);
    assert_int_equal(tarn_sim_now_ns(device), 1000);
    assert_int_equal(tarn_stream_get_capture(device, stream, &capture, &error), TARN_OK);
    assert_int_equal(capture, 0);
    assert_int_equal(tarn_sim_set_capturing(device, stream, true), TARN_OK);
    for (int work = 0; work < 2; work++) {
        capture = 0;
        assert_int_equal(tarn_stream_get_capture(device, stream, &capture, &error), TARN_OK);
        assert_int_not_equal(capture, 0);
        assert_int_equal(tarn_sim_enqueue_ns(device, stream, 1000), TARN_OK); /* in the capture */
    }
    assert_int_equal(tarn_sim_set_capturing(device, stream, false), TARN_OK);
    assert_int_equal(tarn_stream_destroy(device, stream, &error), TARN_OK);
    assert_int_equal(tarn_stream_destroy(device, stream, &error), TARN_ERR_DEVICE);
    assert_non_null(strstr(error.text, "destroying a stream: no stream"));
    sim_close(device);
}

static void failures_have_their_text(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct tarn_error error;
    tarn_stream stream = 7;
    uint64_t capture = 5;

    (void)state;
    tarn_sim_fail_nth(device, TARN_SIM_STREAM_CREATE, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_stream_create(device, &stream, &error), TARN_ERR_DEVICE);
    assert_non_null(strstr(error.text, "creating a stream: planned failure"));
    assert_int_equal(stream, 7);
    tarn_sim_fail_nth(device, TARN_SIM_STREAM_WAIT, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_stream_wait(device, 0, NULL), TARN_ERR_DEVICE);
    tarn_sim_fail_nth(device, TARN_SIM_CAPTURE_INFO, 1, TARN_ERR_DEVICE);
    assert_int_equal(tarn_stream_get_capture(device, 0, &capture, &error), TARN_ERR_DEVICE);
    assert_int_equal(capture, 5);
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_come_and_go),
        cmocka_unit_test(failures_have_their_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
