/* SPDX-License-Identifier: MIT */
/* Which processes NVML shows, and what is said when it shows none. */
#include "support/test.h"

#include "support/cuda.h"
#include "support/hidden.h"

#include <stdio.h>
#include <string.h>

#define BUS_ID "0000:01:00.0"

struct seen {
    uint64_t count;
    int64_t last;
    uint64_t used; /* by all whose bytes are known */
};

static void see(void *context, int64_t process, uint64_t used)
{
    struct seen *seen = context;

    seen->count++;
    seen->last = process;
    seen->used += used == TARN_PROCESS_BYTES_UNKNOWN ? 0 : used;
}

/* Asks twice: the library is opened once. */
static void expect_failure(const char *path, const char *bus_id, enum tarn_status status,
                           const char *text)
{
    struct tn_nvml nvml;
    struct seen seen = {0};

    tn_nvml_init(&nvml, path);
    for (int i = 0; i < 2; i++) {
        char why[256] = "";
        int number = 7;

        assert_int_equal(tn_nvml_processes(&nvml, bus_id, see, &seen, &number, why, sizeof why),
                         status);
        assert_string_equal(why, text);
        assert_int_equal(number, 7);
    }
    assert_int_equal(seen.count, 0);
    tn_nvml_fini(&nvml);
}

static struct seen expect_seen(struct tn_nvml *nvml)
{
    struct seen seen = {0};
    char why[256] = "";
    int number = 7;

    if (tn_nvml_processes(nvml, BUS_ID, see, &seen, &number, why, sizeof why)) {
        fail_msg("%s", why);
    }
    assert_int_equal(number, 3);
    return seen;
}

static void processes_and_the_number_are_shown(void **state)
{
    static const char *const paths[] = {FAKE_CUDA, FAKE_CUDA_11};
    const struct tn_nvml_process processes[] = {
        {.pid = 1, .used = 3 * GIB / 2},
        {.pid = 77, .used = TN_NVML_UNKNOWN},
        {.pid = 4000000000, .used = 500 * MIB},
    };

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        const struct fake_cuda *fake = fake_open(paths[i]);
        struct tn_nvml nvml;

        tn_nvml_init(&nvml, paths[i]);
        assert_int_equal(expect_seen(&nvml).count, 0);
        fake->set_processes(processes, 3);
        const struct seen seen = expect_seen(&nvml);

        assert_int_equal(seen.count, 3);
        assert_int_equal(seen.last, 4000000000);
        assert_int_equal(seen.used, 3 * GIB / 2 + 500 * MIB);
        tn_nvml_fini(&nvml);
    }
}

static void more_processes_than_usual_are_listed(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const uint64_t host_bytes = tarn_host_get_usage().live_bytes;
    struct tn_nvml_process processes[40];
    struct tn_nvml nvml;
    struct seen seen = {0};
    char why[256] = "";
    int number = 0;

    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        processes[i] = (struct tn_nvml_process){.pid = 100000 + i, .used = MIB};
    }
    fake->set_processes(processes, 40);
    tn_nvml_init(&nvml, FAKE_CUDA);
    assert_int_equal(expect_seen(&nvml).used, 40 * MIB);
    assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
    tarn_host_fail_nth(1);
    assert_int_equal(tn_nvml_processes(&nvml, BUS_ID, see, &seen, &number, why, sizeof why),
                     TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_string_equal(why, "no host memory for a list of 40 processes");
    assert_int_equal(seen.count, 0);
    tn_nvml_fini(&nvml);
}

static void failures_have_their_sentences(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const struct tn_nvml_process process = {.pid = 1, .used = MIB};

    (void)state;
    fake->set_processes(&process, 1);
    expect_failure("/no/such/library.so", BUS_ID, TARN_ERR_NOT_FOUND,
                   "/no/such/library.so cannot be loaded: it comes with the NVIDIA driver");
    expect_failure(FAKE_CUDA, "0000:77:00.0", TARN_ERR_DEVICE,
                   "nvmlDeviceGetHandleByPciBusId: error 6");
    fake->set_nvml_results(1, 0, 0);
    expect_failure(FAKE_CUDA, BUS_ID, TARN_ERR_DEVICE, "nvmlInit failed");
    fake->set_nvml_results(TN_NVML_DRIVER_NOT_LOADED, 0, 0);
    expect_failure(FAKE_CUDA, BUS_ID, TARN_ERR_NOT_READY,
                   "NVML finds no NVIDIA driver: is its kernel module loaded?");
    fake->set_nvml_results(0, 2, 0);
    expect_failure(FAKE_CUDA, BUS_ID, TARN_ERR_DEVICE, "nvmlDeviceGetHandleByPciBusId: error 2");
    fake->set_nvml_results(0, 0, 999);
    expect_failure(FAKE_CUDA, BUS_ID, TARN_ERR_DEVICE,
                   "nvmlDeviceGetComputeRunningProcesses: error 999");
    fake->set_nvml_results(0, 0, TN_NVML_INSUFFICIENT_SIZE); /* time and again */
    expect_failure(FAKE_CUDA, BUS_ID, TARN_ERR_DEVICE,
                   "nvmlDeviceGetComputeRunningProcesses: error 7");
    fake->set_nvml_results(0, 0, 0);
}

static void without_a_function_it_cannot_be_used(void **state)
{
    static const char *const needed[][2] = {
        {"nvmlInit_v2", NULL},
        {"nvmlDeviceGetHandleByPciBusId_v2", NULL},
        {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"},
    };
    char text[512];

    (void)state;
    (void)fake_open(FAKE_CUDA);
    (void)snprintf(text, sizeof text, "%s cannot be loaded: it comes with the NVIDIA driver",
                   FAKE_CUDA);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++) {
        hide(needed[i][0], needed[i][1]);
        expect_failure(FAKE_CUDA, BUS_ID, TARN_ERR_NOT_FOUND, text);
    }
    hide(NULL, NULL);
}

static int index_fails(void *gpu, unsigned *index)
{
    (void)gpu;
    *index = 9;
    return 999;
}

/* Neither the number nor the memory is needed. */
static void without_others_less_is_known(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const struct tn_nvml_process process = {.pid = 1, .used = MIB};
    uint64_t unused = 5;
    uint64_t total = 6;

    (void)state;
    fake->set_processes(&process, 1);
    for (int has_index = 0; has_index < 2; has_index++) {
        struct tn_nvml nvml;
        struct seen seen = {0};
        char why[256] = "";
        int number = 7;

        tn_nvml_init(&nvml, FAKE_CUDA);
        hide("nvmlDeviceGetMemoryInfo", has_index ? NULL : "nvmlDeviceGetIndex");
        assert_false(tn_nvml_memory(&nvml, BUS_ID, &unused, &total));
        assert_int_equal(nvml.get_index != NULL, has_index);
        if (has_index) {
            nvml.get_index = index_fails;
        }
        assert_int_equal(tn_nvml_processes(&nvml, BUS_ID, see, &seen, &number, why, sizeof why),
                         TARN_OK);
        assert_int_equal(seen.used, MIB);
        assert_int_equal(number, 7);
        tn_nvml_fini(&nvml);
    }
    hide(NULL, NULL);
    assert_int_equal(unused, 5);
    assert_int_equal(total, 6);
}

/* A library that has other answers each time. */
static struct {
    unsigned calls;
    unsigned room[8];   /* that the list had at each call */
    unsigned wanted[8]; /* processes there are then; 0: as many as there is room for */
    bool always;        /* says that there are more */
} scripted;

static int processes_change(void *gpu, unsigned *count, struct tn_nvml_process *processes)
{
    const unsigned call = scripted.calls++ % 8;
    const unsigned room = *count;

    (void)gpu;
    scripted.room[call] = room;
    *count = scripted.wanted[call] ? scripted.wanted[call] : room;
    if (*count > room || scripted.always) {
        return TN_NVML_INSUFFICIENT_SIZE;
    }
    for (unsigned i = 0; i < *count; i++) {
        processes[i] = (struct tn_nvml_process){.pid = i + 1, .used = 1};
    }
    return TN_NVML_SUCCESS;
}

static enum tarn_status scripted_run(struct seen *seen_out)
{
    const uint64_t host_bytes = tarn_host_get_usage().live_bytes;
    struct tn_nvml nvml;
    char why[256] = "";
    int number = 7;

    (void)fake_open(FAKE_CUDA);
    *seen_out = (struct seen){0};
    scripted.calls = 0;
    tn_nvml_init(&nvml, FAKE_CUDA);
    (void)expect_seen(&nvml); /* opens it */
    nvml.get_processes = processes_change;
    const enum tarn_status st =
        tn_nvml_processes(&nvml, BUS_ID, see, seen_out, &number, why, sizeof why);

    tn_nvml_fini(&nvml);
    assert_int_equal(tarn_host_get_usage().live_bytes, host_bytes);
    return st;
}

/* Processes start while the list is made. */
static void lists_grow_until_all_fit(void **state)
{
    struct seen seen;

    (void)state;
    scripted.wanted[0] = 20;
    scripted.wanted[1] = 30;
    scripted.wanted[2] = 40;
    scripted.wanted[3] = 40;
    assert_int_equal(scripted_run(&seen), TARN_OK);
    assert_int_equal(scripted.calls, 4);
    assert_int_equal(scripted.room[0], 16);
    assert_int_equal(scripted.room[1], 20);
    assert_int_equal(scripted.room[3], 40);
    assert_int_equal(seen.count, 40);
    memset(&scripted, 0, sizeof scripted);
    scripted.wanted[0] = 3;
    assert_int_equal(scripted_run(&seen), TARN_OK);
    assert_int_equal(scripted.calls, 1); /* and no more often than that */
    assert_int_equal(seen.count, 3);
    scripted.wanted[0] = 65536;
    scripted.wanted[1] = 65536;
    assert_int_equal(scripted_run(&seen), TARN_OK);
    assert_int_equal(seen.count, 65536);
    scripted.wanted[0] = 65537;
    assert_int_equal(scripted_run(&seen), TARN_ERR_HOST_MEMORY);
    memset(&scripted, 0, sizeof scripted);
}

/* Each time the list has all its room, whatever number the library gave. */
static void a_list_that_never_fits_is_given_up(void **state)
{
    struct seen seen;

    (void)state;
    scripted.always = true;
    scripted.wanted[0] = 3;
    assert_int_equal(scripted_run(&seen), TARN_ERR_DEVICE);
    assert_int_equal(scripted.calls, 4);
    assert_int_equal(scripted.room[1], 16);
    assert_int_equal(seen.count, 0);
    memset(&scripted, 0, sizeof scripted);
}

/* The message of a failure has them, and is written while the allocator's locks are held. */
static void processes_may_be_asked_for_under_other_locks(void **state)
{
    struct tn_nvml nvml;
    struct tn_lock lock;

    (void)state;
    (void)fake_open(FAKE_CUDA);
    tn_nvml_init(&nvml, FAKE_CUDA);
    tn_lock_init(&lock, TN_LOCK_SINK);
    tn_lock_acquire(&lock);
    (void)expect_seen(&nvml);
    tn_lock_release(&lock);
    tn_lock_fini(&lock);
    tn_nvml_fini(&nvml);
}

static void memory_is_of_all_processes(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    const struct tn_nvml_memory memory = {.total = 3 * GIB, .free = 2 * GIB, .used = GIB};
    static const struct {
        int init;
        int handle;
        int memory;
    } results[] = {{1, 0, 0}, {0, 2, 0}, {0, 0, 999}};
    uint64_t unused = 5;
    uint64_t total = 6;
    struct tn_nvml nvml;

    (void)state;
    tn_nvml_init(&nvml, "/no/such/library.so");
    assert_false(tn_nvml_memory(&nvml, BUS_ID, &unused, &total));
    tn_nvml_fini(&nvml);
    for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
        fake->set_nvml_results(results[i].init, results[i].handle, 0);
        fake->set_nvml_memory(&memory, results[i].memory);
        tn_nvml_init(&nvml, FAKE_CUDA);
        assert_false(tn_nvml_memory(&nvml, BUS_ID, &unused, &total));
        tn_nvml_fini(&nvml);
    }
    assert_int_equal(unused, 5);
    assert_int_equal(total, 6);
    fake->set_nvml_results(0, 0, 0);
    fake->set_nvml_memory(&memory, 0);
    tn_nvml_init(&nvml, FAKE_CUDA);
    assert_true(tn_nvml_memory(&nvml, BUS_ID, &unused, &total));
    tn_nvml_fini(&nvml);
    assert_int_equal(unused, 2 * GIB);
    assert_int_equal(total, 3 * GIB);
}

static int processes_are_too_many(void *gpu, unsigned *count, struct tn_nvml_process *processes)
{
    (void)gpu;
    (void)processes;
    *count = UINT32_MAX;
    return TN_NVML_INSUFFICIENT_SIZE;
}

static void lists_are_bounded(void **state)
{
    struct tn_nvml nvml;
    struct seen seen = {0};
    char why[256] = "";
    int number = 7;

    (void)state;
    (void)fake_open(FAKE_CUDA);
    tn_nvml_init(&nvml, FAKE_CUDA);
    (void)expect_seen(&nvml);
    nvml.get_processes = processes_are_too_many;
    assert_int_equal(tn_nvml_processes(&nvml, BUS_ID, see, &seen, &number, why, sizeof why),
                     TARN_ERR_HOST_MEMORY);
    assert_string_equal(why, "no host memory for a list of 4294967295 processes");
    tn_nvml_fini(&nvml);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_and_the_number_are_shown),
        cmocka_unit_test(more_processes_than_usual_are_listed),
        cmocka_unit_test(failures_have_their_sentences),
        cmocka_unit_test(without_a_function_it_cannot_be_used),
        cmocka_unit_test(without_others_less_is_known),
        cmocka_unit_test(lists_are_bounded),
        cmocka_unit_test(lists_grow_until_all_fit),
        cmocka_unit_test(a_list_that_never_fits_is_given_up),
        cmocka_unit_test(processes_may_be_asked_for_under_other_locks),
        cmocka_unit_test(memory_is_of_all_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
