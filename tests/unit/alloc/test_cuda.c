/* SPDX-License-Identifier: MIT */
/* Allocators on GPUs, with a driver that simulates one: the same pointers as on the simulated
 * device, private pools under real captures, the message when memory runs out,
 * tarn_allocator_create_on. */
#include "support/test.h"

#include "support/cuda.h"
#include "tarn/allocator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LIVE_MAX = 200,
    STEPS = 4000
};

static struct tarn_allocator *allocator_on(struct tarn_device *device, const char *settings)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    struct tarn_error error = {.status = TARN_OK};

    assert_int_equal(tarn_config_parse(settings, &config, &error), TARN_OK);
    if (tarn_allocator_create(device, &config, &allocator, &error) != TARN_OK) {
        fail_msg("%s", error.text);
    }
    return allocator;
}

/* One random program on two allocators; every answer is the same. */
static void same_answers(struct tarn_allocator *a, struct tarn_allocator *b, unsigned seed)
{
    tarn_ptr live[LIVE_MAX];
    tarn_stream streams[3] = {0};
    size_t count = 0;
    uint64_t random = seed;

    for (size_t i = 1; i < 3; i++) {
        struct tarn_device *device = tarn_allocator_get_device(a);
        struct tarn_device *other = tarn_allocator_get_device(b);
        tarn_stream same = 0;

        assert_int_equal(device->ops->stream_create(device, &streams[i]), TARN_OK);
        assert_int_equal(other->ops->stream_create(other, &same), TARN_OK);
        assert_int_equal(streams[i], same);
    }
    for (int step = 0; step < STEPS; step++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        const uint64_t pick = random >> 33;
        const tarn_stream stream = streams[pick % 3];

        if (pick % 97 == 0) {
            assert_int_equal(tarn_allocator_empty_cache(a, NULL),
                             tarn_allocator_empty_cache(b, NULL));
        } else if (count < LIVE_MAX && pick % 5 < 3) {
            const uint64_t size = 1 + ((pick >> 3) << (pick % 11)) % (96 * MIB);
            tarn_ptr x = 0;
            tarn_ptr y = 0;

            assert_int_equal(tarn_allocator_alloc(a, size, stream, &x, NULL),
                             tarn_allocator_alloc(b, size, stream, &y, NULL));
            assert_int_equal(x, y);
            if (x != 0) {
                live[count++] = x;
            }
        } else if (count > 0) {
            const size_t at = pick % count;

            if (pick % 2 == 0) {
                assert_int_equal(tarn_allocator_record_stream(a, live[at], stream, NULL), TARN_OK);
                assert_int_equal(tarn_allocator_record_stream(b, live[at], stream, NULL), TARN_OK);
            }
            assert_int_equal(tarn_allocator_free(a, live[at], NULL), TARN_OK);
            assert_int_equal(tarn_allocator_free(b, live[at], NULL), TARN_OK);
            live[at] = live[--count];
        }
    }
    struct tarn_stats x = {.struct_size = sizeof x};
    struct tarn_stats y = {.struct_size = sizeof y};
    tarn_allocator_get_stats(a, &x);
    tarn_allocator_get_stats(b, &y);
    assert_memory_equal(&x, &y, sizeof x);
    for (size_t i = 1; i < 3; i++) {
        struct tarn_device *device = tarn_allocator_get_device(a);

        assert_int_equal(device->ops->stream_destroy(device, streams[i]), TARN_OK);
    }
}

static void gpus_get_the_same_decisions(void **state)
{
    static const char *const settings[] = {"", "expandable_segments:True", "max_split_size_mb:32",
                                           "garbage_collection_threshold:0.6"};

    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        const struct fake_cuda *fake = fake_open(FAKE_CUDA);
        struct tarn_device *sim = sim_open(GIB);
        struct tarn_device *cuda = cuda_open();
        struct tarn_allocator *a = allocator_on(cuda, settings[i]);
        struct tarn_allocator *b = allocator_on(sim, settings[i]);
        struct tarn_findings findings = TARN_FINDINGS_INIT;

        same_answers(a, b, (unsigned)i);
        assert_int_equal(tarn_allocator_check(a, &findings), 0);
        tarn_allocator_destroy(a);
        tarn_allocator_destroy(b);
        tarn_device_close(cuda);
        sim_close(sim);
        assert_int_equal(fake->alive(0), 0);
        assert_int_equal(fake->used_bytes(0), 0);
        assert_int_equal(fake->retained(0), 0);
    }
}

static void observe(void *context, const struct tarn_oom *oom)
{
    (void)snprintf(context, 256, "%s", oom->processes);
}

static void the_message_names_the_processes(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const struct tn_nvml_process processes[] = {{.pid = 12, .used = 100 * MIB},
                                                {.pid = (unsigned)getpid(), .used = GIB / 2}};
    const char *const sentences = "Process 12 has 100.00 MiB memory in use. Including non-PyTorch "
                                  "memory, this process has 512.00 MiB memory in use. ";
    struct tarn_device *cuda = cuda_open();
    struct tarn_allocator *allocator = allocator_on(cuda, "");
    struct tarn_error error = {.status = TARN_OK};
    char heard[256] = "";
    char wanted[512];
    tarn_ptr ptr = 0;

    (void)state;
    fake->set_processes(processes, 2);
    assert_int_equal(tarn_allocator_add_oom_observer(allocator, observe, heard), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(allocator, 2 * GIB, 0, &ptr, &error),
                     TARN_ERR_OUT_OF_MEMORY);
    assert_string_equal(heard, sentences);
    (void)snprintf(wanted, sizeof wanted,
                   "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
                   "1024.00 MiB of which 1024.00 MiB is free. %sOf the allocated memory 0 bytes is "
                   "allocated by PyTorch, ",
                   sentences);
    assert_memory_equal(error.text, wanted, strlen(wanted));
    tarn_allocator_destroy(allocator);
    tarn_device_close(cuda);
}

static bool on_stream(void *context, tarn_stream stream)
{
    return stream == *(const tarn_stream *)context;
}

static void a_capture_gets_memory_of_its_own_pool(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_device *cuda = cuda_open();
    const struct tn_cuda_driver *driver = &tn_cuda_from(cuda)->driver;
    void *context = tn_cuda_from(cuda)->context;
    struct tarn_allocator *allocator = allocator_on(cuda, "");
    const struct tarn_pool_id pool = {1, 0};
    tarn_stream stream = 0;
    tarn_ptr ptr = 0;
    void *graph = NULL;
    void *executable = NULL;
    unsigned char bytes[16] = {0};

    (void)state;
    assert_int_equal(driver->cuCtxPushCurrent_v2(context), TN_CU_SUCCESS);
    assert_int_equal(driver->cuStreamCreate(&stream, TN_CU_STREAM_NON_BLOCKING), TN_CU_SUCCESS);
    assert_int_equal(tarn_allocator_begin_pool(allocator, pool, on_stream, &stream, NULL), TARN_OK);
    assert_int_equal(driver->cuStreamBeginCapture_v2(stream, TN_CU_CAPTURE_MODE_GLOBAL),
                     TN_CU_SUCCESS);
    assert_int_equal(tarn_allocator_alloc(allocator, MIB, stream, &ptr, NULL), TARN_OK);
    assert_int_equal(driver->cuMemsetD8Async(ptr, 7, sizeof bytes, stream), TN_CU_SUCCESS);
    assert_int_equal(tarn_allocator_free(allocator, ptr, NULL), TARN_OK);
    assert_int_equal(driver->cuStreamEndCapture(stream, &graph), TN_CU_SUCCESS);
    assert_false(fake->spoiled());
    assert_int_equal(tarn_allocator_end_pool(allocator, pool, NULL), TARN_OK);
    assert_int_equal(driver->cuGraphInstantiateWithFlags(&executable, graph, 0), TN_CU_SUCCESS);
    assert_int_equal(driver->cuGraphLaunch(executable, stream), TN_CU_SUCCESS);
    assert_int_equal(driver->cuStreamSynchronize(stream), TN_CU_SUCCESS);
    assert_int_equal(driver->cuMemcpyDtoH_v2(bytes, ptr, sizeof bytes), TN_CU_SUCCESS);
    assert_int_equal(bytes[15], 7);
    assert_int_equal(driver->cuGraphExecDestroy(executable), TN_CU_SUCCESS);
    assert_int_equal(driver->cuGraphDestroy(graph), TN_CU_SUCCESS);
    assert_int_equal(tarn_allocator_release_pool(allocator, pool, NULL), TARN_OK);
    assert_int_equal(driver->cuStreamDestroy_v2(stream), TN_CU_SUCCESS);
    assert_int_equal(driver->cuCtxPopCurrent_v2(&context), TN_CU_SUCCESS);
    tarn_allocator_destroy(allocator);
    tarn_device_close(cuda);
    assert_int_equal(fake->alive(0), 0);
}

static void a_stream_of_another_gpu_is_told_at_once(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_error error = {.status = TARN_OK};
    tarn_stream foreign = 0;
    tarn_ptr ptr = 0;

    (void)state;
    fake->set_devices(2, GIB);
    struct tarn_device *device = cuda_open();
    struct tarn_allocator *allocator = allocator_on(device, "");

    assert_int_equal(device->ops->stream_create(device, &foreign), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(allocator, MIB, 0, &ptr, &error), TARN_OK);
    fake->claim_stream(foreign, 1);
    assert_int_equal(tarn_allocator_record_stream(allocator, ptr, foreign, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "recording a stream: the stream is not one of GPU 0");
    assert_int_equal(tarn_allocator_free(allocator, ptr, &error), TARN_OK); /* nothing is lost */
    assert_int_equal(fake->calls("cuEventRecord"), 0);

    /* One of its own is asked about once. */
    fake->claim_stream(0, 0);
    assert_int_equal(tarn_allocator_alloc(allocator, MIB, 0, &ptr, &error), TARN_OK);
    const uint64_t asked = fake->calls("cuStreamGetCtx");

    for (int i = 0; i < 3; i++) {
        assert_int_equal(tarn_allocator_record_stream(allocator, ptr, foreign, &error), TARN_OK);
    }
    assert_int_equal(fake->calls("cuStreamGetCtx"), asked + 1);
    assert_int_equal(tarn_allocator_free(allocator, ptr, &error), TARN_OK);
    assert_int_equal(device->ops->stream_destroy(device, foreign), TARN_OK);
    tarn_allocator_destroy(allocator);
    tarn_device_close(device);
    assert_int_equal(fake->alive(0), 0);
    (void)fake_open(FAKE_CUDA);
}

static void the_driver_may_shut_down_first(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    static const char *const settings[] = {"", "expandable_segments:True",
                                           "backend:cudaMallocAsync"};

    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct tarn_device *cuda = cuda_open();
        struct tarn_allocator *allocator = allocator_on(cuda, settings[i]);
        tarn_ptr ptr = 0;

        assert_int_equal(tarn_allocator_alloc(allocator, MIB, 0, &ptr, NULL), TARN_OK);
        assert_int_equal(tarn_allocator_record_stream(allocator, ptr, 3, NULL), TARN_OK);
        fake->shut_down(true);
        tarn_allocator_destroy(allocator);
        tarn_device_close(cuda);
        fake->reset();
    }
}

/* ---- tarn_allocator_create_on ---- */

static void an_allocator_may_own_its_device(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const uint64_t host_bytes = tarn_host_get_usage().live_bytes;
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    struct tarn_device_info info = {.struct_size = sizeof info};
    tarn_ptr ptr = 0;

    (void)state;
    assert_int_equal(tarn_allocator_create_on(NULL, "expandable_segments:True", &allocator, NULL),
                     TARN_OK);
    tarn_device_get_info(tarn_allocator_get_device(allocator), &info);
    assert_string_equal(info.backend, "cuda");
    tarn_allocator_get_config(allocator, &config);
    assert_true(config.expandable_segments);
    assert_int_equal(tarn_allocator_alloc(allocator, MIB, 0, &ptr, NULL), TARN_OK);
    assert_int_equal(fake->retained(0), 1);
    tarn_allocator_destroy(allocator);
    assert_int_equal(fake->retained(0), 0);
    assert_int_equal(fake->alive(0), 0);

    assert_int_equal(
        tarn_allocator_create_on("sim:1GiB", "backend:cudaMallocAsync", &allocator, NULL), TARN_OK);
    tarn_device_get_info(tarn_allocator_get_device(allocator), &info);
    assert_string_equal(info.backend, "sim");
    tarn_allocator_destroy(allocator);
    assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
}

static void settings_may_come_from_the_environment(void **state)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    assert_int_equal(setenv("TARN_ALLOC_CONF", "max_split_size_mb:64", 1), 0);
    assert_int_equal(tarn_allocator_create_on("sim", NULL, &allocator, NULL), TARN_OK);
    tarn_allocator_get_config(allocator, &config);
    assert_int_equal(config.max_split_size, 64 * MIB);
    tarn_allocator_destroy(allocator);
    assert_int_equal(tarn_allocator_create_on("sim", "", &allocator, NULL), TARN_OK);
    tarn_allocator_get_config(allocator, &config);
    assert_true(config.max_split_size == TARN_SIZE_UNLIMITED);
    tarn_allocator_destroy(allocator);
    allocator = NULL;
    assert_int_equal(setenv("TARN_ALLOC_CONF", "nonsense", 1), 0);
    assert_int_equal(tarn_allocator_create_on("sim", NULL, &allocator, &error), TARN_ERR_CONFIG);
    assert_int_equal(unsetenv("TARN_ALLOC_CONF"), 0);
    assert_null(allocator);
}

static void a_failing_open_leaves_nothing(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const uint64_t host_bytes = tarn_host_get_usage().live_bytes;
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    assert_int_equal(tarn_allocator_create_on("sim", "nonsense", &allocator, &error),
                     TARN_ERR_CONFIG);
    assert_int_equal(tarn_allocator_create_on("nonsense", "", &allocator, &error),
                     TARN_ERR_INVALID_ARGUMENT);
    for (uint64_t n = 1; n <= 2; n++) { /* the device, the allocator */
        tarn_host_fail_nth(n);
        assert_int_equal(tarn_allocator_create_on("cuda", "", &allocator, &error),
                         TARN_ERR_HOST_MEMORY);
        tarn_host_fail_nth(0);
    }
    assert_null(allocator);
    assert_int_equal(fake->retained(0), 0);
    assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
}

static void a_stream_of_each_thread_is_refused(void **state)
{
    static const char *const settings[] = {"", "expandable_segments:True",
                                           "backend:cudaMallocAsync"};
    struct tarn_device *device = cuda_open();

    (void)state;
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        struct tarn_allocator *allocator = allocator_on(device, settings[i]);
        struct tarn_error error = {.status = TARN_OK};
        tarn_ptr ptr = 7;

        for (int turn = 0; turn < 2; turn++) {
            assert_int_equal(tarn_allocator_alloc(allocator, MIB, 2, &ptr, &error),
                             TARN_ERR_NOT_SUPPORTED);
            assert_int_equal(ptr, 7);
            assert_string_equal(
                error.text,
                "stream 2 is cudaStreamPerThread, a different stream in each thread, but memory is "
                "cached per stream: create a stream for each thread and pass that");
        }
        assert_int_equal(tarn_allocator_alloc(allocator, MIB, 1, &ptr, NULL), TARN_OK);
        assert_int_equal(tarn_allocator_record_stream(allocator, ptr, 2, &error),
                         TARN_ERR_NOT_SUPPORTED);
        assert_int_equal(tarn_allocator_free(allocator, ptr, NULL), TARN_OK);
        tarn_allocator_destroy(allocator);
    }
    tarn_device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_get_the_same_decisions),
        cmocka_unit_test(the_message_names_the_processes),
        cmocka_unit_test(a_capture_gets_memory_of_its_own_pool),
        cmocka_unit_test(a_stream_of_another_gpu_is_told_at_once),
        cmocka_unit_test(a_stream_of_each_thread_is_refused),
        cmocka_unit_test(the_driver_may_shut_down_first),
        cmocka_unit_test(an_allocator_may_own_its_device),
        cmocka_unit_test(settings_may_come_from_the_environment),
        cmocka_unit_test(a_failing_open_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
