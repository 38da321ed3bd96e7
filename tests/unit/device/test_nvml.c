/* SPDX-License-Identifier: MIT */
/* What the out-of-memory message says about processes, and how it does without. */
#include "support/test.h"

#include "support/cuda.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BUS_ID "0000:01:00.0"

static void expect_text(const char *path, const char *bus_id, const char *text)
{
    struct tn_nvml nvml;
    char said[256] = "unset";

    tn_nvml_init(&nvml, path);
    tn_nvml_processes(&nvml, bus_id, said, sizeof said);
    assert_string_equal(said, text);
    tn_nvml_processes(&nvml, bus_id, said, sizeof said);
    assert_string_equal(said, text);
    tn_nvml_fini(&nvml);
}

static void every_process_has_its_sentence(void **state)
{
    static const char *const paths[] = {FAKE_CUDA, FAKE_CUDA_11};
    const struct tn_nvml_process processes[] = {
        {.pid = 1, .used = 3 * GIB / 2},
        {.pid = 77, .used = TN_NVML_UNKNOWN},
        {.pid = (unsigned)getpid(), .used = 500 * MIB},
    };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct fake_cuda *fake = fake_open(paths[i]);

        expect_text(paths[i], BUS_ID, "");
        fake->set_processes(processes, 3);
        expect_text(paths[i], BUS_ID,
                    "Process 1 has 1.50 GiB memory in use. Including non-PyTorch memory, this "
                    "process has 500.00 MiB memory in use. ");
    }
}

static void more_processes_than_usual_are_listed(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const uint64_t host_bytes = tarn_host_usage().live_bytes;
    struct tn_nvml_process processes[40];
    struct tn_nvml nvml;
    char text[4096] = "";

    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        processes[i] = (struct tn_nvml_process){.pid = 100000 + i, .used = MIB};
    }
    fake->set_processes(processes, 40);
    tn_nvml_init(&nvml, FAKE_CUDA);
    tn_nvml_processes(&nvml, BUS_ID, text, sizeof text);
    assert_non_null(strstr(text, "Process 100039 has 1024.00 KiB memory in use. "));
    assert_int_equal(tarn_host_usage().live_bytes, host_bytes);
    tarn_host_fail_nth(1);
    tn_nvml_processes(&nvml, BUS_ID, text, sizeof text);
    tarn_host_fail_nth(0);
    assert_string_equal(text, "");
    tn_nvml_fini(&nvml);
}

static void only_whole_sentences_are_written(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const struct tn_nvml_process processes[] = {{.pid = 100000, .used = MIB},
                                                {.pid = 2, .used = MIB}};
    const char *const second = "Process 2 has 1024.00 KiB memory in use. ";
    struct tn_nvml nvml;
    char text[64];

    (void)state;
    fake->set_processes(processes, 2);
    tn_nvml_init(&nvml, FAKE_CUDA);
    tn_nvml_processes(&nvml, BUS_ID, text, 1);
    assert_string_equal(text, "");
    tn_nvml_processes(&nvml, BUS_ID, text, strlen(second));
    assert_string_equal(text, "");
    tn_nvml_processes(&nvml, BUS_ID, text, strlen(second) + 1);
    assert_string_equal(text, second);
    tn_nvml_fini(&nvml);
}

static void without_nvml_nothing_is_said(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const struct tn_nvml_process process = {.pid = 1, .used = MIB};

    (void)state;
    fake->set_processes(&process, 1);
    expect_text("/no/such/library.so", BUS_ID, "");
    expect_text(FAKE_CUDA, "0000:77:00.0", "");
    fake->set_nvml_results(1, 0, 0);
    expect_text(FAKE_CUDA, BUS_ID, "");
    fake->set_nvml_results(0, 2, 0);
    expect_text(FAKE_CUDA, BUS_ID, "");
    fake->set_nvml_results(0, 0, 999);
    expect_text(FAKE_CUDA, BUS_ID, "");
    fake->set_nvml_results(0, 0, TN_NVML_INSUFFICIENT_SIZE); /* time and again */
    expect_text(FAKE_CUDA, BUS_ID, "");
    fake->set_nvml_results(0, 0, 0);
    expect_text(FAKE_CUDA, BUS_ID, "Process 1 has 1024.00 KiB memory in use. ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_process_has_its_sentence),
        cmocka_unit_test(more_processes_than_usual_are_listed),
        cmocka_unit_test(only_whole_sentences_are_written),
        cmocka_unit_test(without_nvml_nothing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
