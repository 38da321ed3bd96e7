/* SPDX-License-Identifier: MIT */
/* Processes that use a device: PyTorch's list of them, and the sentences of its message. */
#include "support/test.h"

#include "device/process.h"
#include "support/collect.h"
#include "support/cuda.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What is listed; free with free(). */
static char *list_of(struct tarn_device *device)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error;

    if (tarn_device_list_processes(device, &writer, &error)) {
        fail_msg("%s", error.text);
    }
    return collect.text;
}

static void expect_list(struct tarn_device *device, const char *text)
{
    char *listed = list_of(device);

    assert_string_equal(listed, text);
    free(listed);
}

static void expect_sentences(struct tarn_device *device, size_t size, const char *text)
{
    char said[256] = "unset";

    tn_processes_describe(device, said, size);
    assert_string_equal(said, text);
}

static void gpus_list_what_nvml_shows(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_device *device = cuda_open();
    const struct tn_nvml_process processes[] = {
        {.pid = 4711, .used = 3 * GIB / 2},
        {.pid = 7, .used = 1},
        {.pid = 1234567890, .used = TN_NVML_UNKNOWN},
        {.pid = 8, .used = (uint64_t)2 << 40},
    };

    (void)state;
    expect_list(device, "GPU:3\nno processes are running");
    expect_sentences(device, 256, "");
    fake->set_processes(processes, 4);
    expect_list(device, "GPU:3\n"
                        "process       4711 uses     1536.000 MB GPU memory\n"
                        "process          7 uses        0.000 MB GPU memory\n"
                        "process 1234567890 uses      unknown MB GPU memory\n"
                        "process          8 uses  2097152.000 MB GPU memory");
    expect_sentences(device, 256,
                     "Process 4711 has 1.50 GiB memory in use. Process 7 has 1 bytes memory in "
                     "use. Process 8 has 2048.00 GiB memory in use. ");
    tarn_device_close(device);
}

static void only_whole_sentences_are_written(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_device *device = cuda_open();
    const struct tn_nvml_process processes[] = {{.pid = 100000, .used = MIB},
                                                {.pid = 2, .used = MIB}};
    const char *const second = "Process 2 has 1024.00 KiB memory in use. ";

    (void)state;
    fake->set_processes(processes, 2);
    expect_sentences(device, 1, "");
    expect_sentences(device, strlen(second), "");
    expect_sentences(device, strlen(second) + 1, second);
    tarn_device_close(device);
}

/* Nothing is written behind the text, and the first of two sentences may be all that fits. */
static void sentences_stay_in_their_room(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_device *device = cuda_open();
    const struct tn_nvml_process processes[] = {{.pid = 1, .used = MIB}, {.pid = 2, .used = MIB}};
    const char *const first = "Process 1 has 1024.00 KiB memory in use. ";
    const size_t size = 2 * strlen(first) + 1;

    (void)state;
    fake->set_processes(processes, 2);
    expect_sentences(device, size - 1, first);
    for (int mark = 'x'; mark <= 'y'; mark++) {
        char said[256];

        memset(said, mark, sizeof said);
        tn_processes_describe(device, said, size);
        assert_int_equal(strlen(said), size - 1);
        assert_int_equal(said[size], mark);
    }
    tarn_device_close(device);
}

static void without_a_driver_pytorchs_sentence_is_said(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_device *device = cuda_open();

    (void)state;
    fake->set_nvml_results(TN_NVML_DRIVER_NOT_LOADED, 0, 0);
    expect_list(device, "cuda driver can't be loaded, is cuda enabled?");
    fake->set_nvml_results(0, 0, 0);
    tarn_device_close(device);
}

static void no_process(void *context, int64_t process, uint64_t used)
{
    (void)context;
    fail_msg("process %lld, %llu bytes", (long long)process, (unsigned long long)used);
}

static void failures_are_errors(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const struct tn_cuda_options options = {.driver_path = FAKE_CUDA, .nvml_path = "/none.so"};
    struct tarn_device *device = cuda_open();
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    fake->set_nvml_results(0, 0, 15);
    assert_int_equal(tarn_device_list_processes(device, &writer, &error), TARN_ERR_DEVICE);
    assert_string_equal(error.text,
                        "list of processes: nvmlDeviceGetComputeRunningProcesses: error 15");
    assert_int_equal(tarn_device_walk_processes(device, no_process, NULL, &error), TARN_ERR_DEVICE);
    assert_string_equal(error.text,
                        "processes of a device: nvmlDeviceGetComputeRunningProcesses: error 15");
    expect_sentences(device, 256, "");
    fake->set_nvml_results(0, 0, 0);
    tarn_device_close(device);

    assert_int_equal(tn_cuda_open(&options, &device, NULL), TARN_OK);
    assert_int_equal(tarn_device_list_processes(device, &writer, &error), TARN_ERR_NOT_FOUND);
    assert_string_equal(error.text, "list of processes: /none.so cannot be loaded: it comes with "
                                    "the NVIDIA driver");
    assert_null(collect.text);
    tarn_device_close(device);
}

static void note_own(void *context, int64_t process, uint64_t used)
{
    assert_int_equal(process, getpid());
    *(uint64_t *)context += used;
}

static void a_simulated_device_is_used_by_this_process(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    char wanted[256];

    (void)state;
    expect_list(device, "GPU:0\nno processes are running");
    const tarn_ptr ptr = sim_alloc_ok(device, 3 * MIB / 2);

    (void)snprintf(wanted, sizeof wanted, "GPU:0\nprocess %10d uses        1.500 MB GPU memory",
                   (int)getpid());
    expect_list(device, wanted);
    expect_sentences(device, 256,
                     "Including non-PyTorch memory, this process has 1.50 MiB memory in use. ");
    struct tarn_error error = {.status = TARN_OK};
    uint64_t used = 0;

    assert_int_equal(tarn_device_walk_processes(device, note_own, &used, &error), TARN_OK);
    assert_int_equal(used, 3 * MIB / 2);
    assert_int_equal(error.status, TARN_OK);
    assert_int_equal(device->ops->free(device, ptr), TARN_OK);
    sim_close(device);
    struct tarn_device *third = sim_open_with((struct tarn_sim_options){.ordinal = 2});
    int number = 77;

    assert_int_equal(third->ops->processes(third, no_process, NULL, &number), TARN_OK);
    assert_int_equal(number, 2);
    sim_close(third);
}

static void a_refusing_writer_stops_the_list(void **state)
{
    struct tarn_device *device = sim_open(GIB);
    struct test_collect collect = {.room = 3};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_error error = {.status = TARN_OK};

    (void)state;
    assert_int_equal(tarn_device_list_processes(device, &writer, &error), TARN_ERR_IO);
    assert_string_equal(error.text, "list of processes: input/output error");
    sim_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_list_what_nvml_shows),
        cmocka_unit_test(only_whole_sentences_are_written),
        cmocka_unit_test(sentences_stay_in_their_room),
        cmocka_unit_test(without_a_driver_pytorchs_sentence_is_said),
        cmocka_unit_test(failures_are_errors),
        cmocka_unit_test(a_simulated_device_is_used_by_this_process),
        cmocka_unit_test(a_refusing_writer_stops_the_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
