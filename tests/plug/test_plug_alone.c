/* SPDX-License-Identifier: MIT */
/* The plug in a process without torch and without C++: devices, forks, the end, last words. */
#include "support/test.h"

#include "plug/pytorch/plug.h"
#include "support/temp.h"
#include "tarn/host.h"
#include "tarn/oom_dump.h"
#include "tarn/sim.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t MIB = 1 << 20;

static struct tarn_device *open_sim(int ordinal, uint64_t capacity)
{
    const struct tarn_sim_options options = {
        .struct_size = sizeof options, .ordinal = ordinal, .capacity = capacity};
    struct tarn_device *device = NULL;

    assert_int_equal(tarn_sim_open(&options, &device, NULL), TARN_OK);
    assert_int_equal(tarn_torch_use_device(ordinal, device, NULL), TARN_OK);
    return device;
}

static void close_sim(int ordinal, struct tarn_device *device)
{
    tarn_torch_close_device(ordinal);
    tarn_device_close(device);
}

static void a_device_has_one_allocator(void **state)
{
    struct tarn_device *device = open_sim(3, 1024 * MIB);
    struct tarn_allocator *first = NULL;
    struct tarn_allocator *second = NULL;
    struct tarn_error error;

    (void)state;
    assert_null(tarn_torch_find_allocator(3));
    assert_int_equal(tarn_torch_open_allocator(3, &first, &error), TARN_OK);
    assert_int_equal(tarn_torch_open_allocator(3, &second, &error), TARN_OK);
    assert_ptr_equal(first, second);
    assert_ptr_equal(tarn_torch_find_allocator(3), first);
    assert_int_equal(tarn_torch_use_device(3, device, &error), TARN_ERR_STATE);
    assert_non_null(strstr(error.text, "in use already"));
    close_sim(3, device);
    assert_null(tarn_torch_find_allocator(3));
}

static void wrong_devices_are_named(void **state)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_torch_open_allocator(-1, &allocator, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_string_equal(error.text, "invalid device -1: device numbers are 0 to 63");
    assert_null(tarn_torch_find_allocator(64));
    tarn_torch_close_device(64);
    /* A GPU that this machine does not have: the device says so, and the next call may work. */
    assert_int_not_equal(tarn_torch_open_allocator(63, &allocator, &error), TARN_OK);
    assert_true(error.text[0] != 0);
    close_sim(63, open_sim(63, MIB));
}

static void settings_reach_all_devices(void **state)
{
    struct tarn_device *device = open_sim(4, 1024 * MIB);
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config = {.struct_size = sizeof config};
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_torch_open_allocator(4, &allocator, NULL), TARN_OK);
    assert_int_equal(tarn_torch_configure("max_split_size_mb:30", &error), TARN_OK);
    tarn_allocator_get_config(allocator, &config);
    assert_int_equal(config.max_split_size, 30 * MIB);
    assert_int_equal(tarn_torch_get_config(&config, &error), TARN_OK);
    assert_int_equal(config.max_split_size, 30 * MIB);
    assert_int_equal(tarn_torch_configure("max_split_size_mb:x", &error), TARN_ERR_CONFIG);
    assert_int_equal(tarn_torch_configure("backend:cudaMallocAsync", &error), TARN_ERR_CONFIG);
    assert_int_equal(tarn_torch_get_config(&config, &error), TARN_OK);
    assert_int_equal(config.max_split_size, 30 * MIB);
    assert_int_equal(config.backend, TARN_BACKEND_NATIVE);
    assert_int_equal(tarn_torch_configure("", &error), TARN_OK); /* back to the defaults */
    close_sim(4, device);
}

static void opening_fails_and_works_again(void **state)
{
    struct tarn_device *device = open_sim(5, 1024 * MIB);
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;
    enum tarn_status st = TARN_ERR_HOST_MEMORY;

    (void)state;
    for (uint64_t n = 1; st != TARN_OK; n++) {
        tarn_host_fail_nth(n);
        st = tarn_torch_open_allocator(5, &allocator, &error);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_true((st == TARN_OK) == (tarn_torch_find_allocator(5) != NULL));
    }
    tarn_host_fail_nth(0);
    close_sim(5, device);
}

static void a_pool_of_torchs_gets_null(void **state)
{
    struct tarn_device *device = open_sim(6, 64 * MIB);
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};
    struct tarn_error error;
    void *ptr = tarn_torch_pool_alloc(20 * MIB, 6, NULL);

    (void)state;
    assert_non_null(ptr);
    assert_null(tarn_torch_pool_alloc(0, 6, NULL));
    assert_null(tarn_torch_pool_alloc(60 * MIB, 6, NULL));
    assert_true(tarn_torch_last_error(&error));
    assert_int_equal(error.status, TARN_ERR_OUT_OF_MEMORY);
    tarn_torch_pool_free(NULL, 0, 6, NULL);
    tarn_torch_pool_free(ptr, 20 * MIB, 6, NULL);
    tarn_sim_get_counters(device, &counters);
    assert_int_equal(counters.used_bytes, 0); /* nothing is kept from torch */
    tarn_torch_pool_free(ptr, 20 * MIB, 6, NULL);
    assert_true(tarn_torch_last_error(&error));
    assert_int_equal(error.status, TARN_ERR_INVALID_POINTER);
    close_sim(6, device);
}

/* ---- snapshots when memory runs out ---- */

static void device_runs_out(int ordinal)
{
    struct tarn_allocator *allocator = NULL;
    tarn_ptr ptr;

    assert_int_equal(tarn_torch_open_allocator(ordinal, &allocator, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(allocator, 60 * MIB, 0, &ptr, NULL),
                     TARN_ERR_OUT_OF_MEMORY);
}

static size_t segments_of(const char *path)
{
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    if (tarn_snapshot_load(path, NULL, &snapshot, &error)) {
        fail_msg("%s", error.text);
    }
    const size_t count = tarn_snapshot_segment_count(snapshot);

    tarn_snapshot_destroy(snapshot);
    return count;
}

static void memory_that_runs_out_writes_a_file(void **state)
{
    struct tarn_device *device = open_sim(9, 64 * MIB);
    const struct temp_folder folder = temp_folder_make();
    struct tarn_allocator *allocator = NULL;
    struct tarn_error error;
    char asked[400];
    char path[TARN_OOM_PATH_BYTES];
    char wanted[400];
    tarn_ptr ptr;

    (void)state;
    assert_int_equal(unsetenv("TARN_DUMP_ON_OOM"), 0);
    assert_int_equal(setenv("RANK", "5", 1), 0);
    (void)snprintf(asked, sizeof asked, "%s/oom-%%r-%%p.pickle", folder.path);
    (void)snprintf(wanted, sizeof wanted, "%s/oom-5-%ld.pickle", folder.path, (long)getpid());
    assert_int_equal(tarn_torch_dump_on_oom(asked, &error), TARN_OK);
    assert_int_equal(tarn_torch_get_dump_on_oom(path, &error), TARN_OK);
    assert_string_equal(path, wanted);
    assert_int_equal(tarn_torch_open_allocator(9, &allocator, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_alloc(allocator, 30 * MIB, 0, &ptr, NULL), TARN_OK);
    assert_int_equal(tarn_torch_oom_dumps(&error), 0);
    device_runs_out(9);
    assert_int_equal(tarn_torch_oom_dumps(&error), 1);
    assert_int_equal(error.status, TARN_OK);
    assert_int_equal(segments_of(path), 1);
    assert_int_equal(unlink(path), 0);

    /* none */
    assert_int_equal(tarn_torch_dump_on_oom(NULL, &error), TARN_OK);
    device_runs_out(9);
    assert_int_equal(tarn_torch_oom_dumps(&error), 1);
    assert_int_equal(access(path, F_OK), -1);

    /* a path that cannot be, and one that may not */
    assert_int_equal(tarn_torch_dump_on_oom("/no/such/folder/x.pickle", &error), TARN_OK);
    device_runs_out(9);
    assert_int_equal(tarn_torch_oom_dumps(&error), 2);
    assert_int_equal(error.status, TARN_ERR_IO);
    assert_non_null(strstr(error.text, "/no/such/folder/x.pickle"));
    assert_int_equal(tarn_torch_dump_on_oom("%q", &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_torch_dump_on_oom(NULL, &error), TARN_OK);
    assert_int_equal(unsetenv("RANK"), 0);
    temp_folder_remove(&folder);
    close_sim(9, device);
}

/* What a child's exit status says. */
enum {
    CHILD_FINE = 0,
    CHILD_WRONG = 1
};

static int in_child(void *ptr)
{
    struct tarn_allocator *allocator = NULL;
    struct tarn_config config;
    struct tarn_error error;

    if (tarn_torch_open_allocator(8, &allocator, &error) != TARN_ERR_STATE ||
        !strstr(error.text, "'spawn'") || tarn_torch_find_allocator(8)) {
        return CHILD_WRONG;
    }
    tarn_torch_shutdown(); /* does not change what a child is told */
    if (tarn_torch_configure("", &error) != TARN_ERR_STATE || !strstr(error.text, "'spawn'") ||
        tarn_torch_get_config(&config, &error) != TARN_ERR_STATE) {
        return CHILD_WRONG;
    }
    tarn_torch_free(ptr, MIB, 8, NULL);
    tarn_torch_pool_free(ptr, MIB, 8, NULL);
    tarn_torch_release_pool(8, (struct tarn_pool_id){0, 1});
    return tarn_torch_pool_alloc(MIB, 8, NULL) ? CHILD_WRONG : CHILD_FINE;
}

static void a_forked_child_is_told(void **state)
{
    struct tarn_device *device = open_sim(8, 1024 * MIB);
    void *ptr = tarn_torch_alloc(MIB, 8, NULL);
    int status = -1;

    (void)state;
    const pid_t child = fork();

    if (child == 0) {
        _exit(in_child(ptr));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_FINE);
    tarn_torch_free(ptr, MIB, 8, NULL); /* the parent goes on */
    assert_ptr_equal(tarn_torch_alloc(MIB, 8, NULL), ptr);
    close_sim(8, device);
}

static atomic_bool over;

/* Takes locks of the plug all the time; not those around dlopen, which no child can use while
 * another thread is inside. */
static void *ask(void *context)
{
    struct tarn_error error;

    while (!atomic_load(&over)) {
        (void)tarn_torch_last_error(&error);
        (void)tarn_torch_is_recording();
    }
    return context;
}

static int ask_in_child(void *ptr)
{
    struct tarn_error error;

    (void)alarm(60); /* ends a child that hangs */
    (void)tarn_torch_last_error(&error);
    (void)tarn_torch_is_recording();
    return in_child(ptr);
}

static void children_of_busy_threads_are_told(void **state)
{
    struct tarn_device *device = open_sim(8, 1024 * MIB);
    void *ptr = tarn_torch_alloc(MIB, 8, NULL);
    pthread_t thread;

    (void)state;
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&thread, NULL, ask, NULL), 0);
    for (int i = 0; i < 40; i++) {
        int status = -1;
        const pid_t child = fork();

        if (child == 0) {
            _exit(ask_in_child(ptr));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == CHILD_FINE);
    }
    atomic_store(&over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    tarn_torch_free(ptr, MIB, 8, NULL);
    close_sim(8, device);
}

static const char *program;

/* Runs this program again with an argument: a forked child would be told that it is one. */
static int run_self(const char *argument, char *output, size_t size)
{
    int status = -1;
    int ends[2];
    size_t length = 0;
    ssize_t got = 0;

    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();

    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)execl(program, program, argument, (char *)NULL);
        _exit(127);
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], output + length, size - 1 - length)) > 0) {
        length += (size_t)got;
    }
    output[length] = 0;
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void without_exceptions_the_process_ends(void **state)
{
    char output[8192];
    const int status = run_self("run-out", output, sizeof output);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_non_null(strstr(output, "tarn: CUDA out of memory. Tried to allocate 2.00 GiB."));
    assert_non_null(strstr(output, tarn_torch_missing_symbol()));
}

static void run_out(void)
{
    (void)open_sim(0, 1024 * MIB);
    (void)tarn_torch_alloc(2048 * MIB, 0, NULL);
}

/* Tensors are freed after the interpreter said goodbye. */
static struct tarn_torch_recording recording_of(uint64_t max_entries)
{
    return (struct tarn_torch_recording){.struct_size = sizeof(struct tarn_torch_recording),
                                         .enabled = true,
                                         .c_stacks = true,
                                         .level = TARN_CONTEXT_ALL,
                                         .max_entries = max_entries};
}

static struct tarn_history_usage usage_of(int device)
{
    struct tarn_history_usage usage = {.struct_size = sizeof usage};

    tarn_history_get_usage(tarn_torch_find_history(device), &usage);
    return usage;
}

/* A process without Python: stacks of C are all there is. */
static void history_without_an_interpreter(void **state)
{
    struct tarn_device *device = open_sim(5, 1024 * MIB);
    struct tarn_torch_recording recording = recording_of(100);
    struct tarn_error error;
    uint64_t frames = 1;
    uint64_t dropped = 1;

    (void)state;
    assert_false(tarn_torch_is_recording());
    assert_int_equal(tarn_torch_record_history(&recording, &error), TARN_OK);
    assert_true(tarn_torch_is_recording());
    assert_null(tarn_torch_find_history(5)); /* not yet opened */
    void *ptr = tarn_torch_alloc(MIB, 5, NULL);

    tarn_torch_free(ptr, MIB, 5, NULL);
    assert_int_equal(usage_of(5).entries, 4);
    assert_true(usage_of(5).stacks >= 2);
    ptr = tarn_torch_pool_alloc(MIB, 5, NULL);
    tarn_torch_pool_free(ptr, MIB, 5, NULL);
    assert_int_equal(usage_of(5).entries, 8); /* the segment went as well */
    tarn_torch_get_python_frames(&frames, &dropped);
    assert_int_equal(frames, 0);
    assert_int_equal(dropped, 0);
    recording = recording_of(2);
    recording.c_stacks = false;
    assert_int_equal(tarn_torch_record_history(&recording, &error), TARN_OK);
    assert_int_equal(usage_of(5).entries, 2);
    recording.clear = true;
    assert_int_equal(tarn_torch_record_history(&recording, &error), TARN_OK);
    assert_int_equal(usage_of(5).entries, 0);
    recording.enabled = false;
    assert_int_equal(tarn_torch_record_history(&recording, &error), TARN_OK);
    assert_false(tarn_torch_is_recording());
    tarn_torch_free(tarn_torch_alloc(MIB, 5, NULL), MIB, 5, NULL);
    assert_int_equal(usage_of(5).entries, 0);
    close_sim(5, device);
    assert_null(tarn_torch_find_history(5));
}

static void histories_that_are_refused(void **state)
{
    struct tarn_torch_recording recording = recording_of(0);
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    (void)state;
    assert_int_equal(tarn_torch_record_history(&recording, &error), TARN_ERR_INVALID_ARGUMENT);
    recording = recording_of(5);
    recording.struct_size = 3;
    assert_int_equal(tarn_torch_record_history(&recording, &error), TARN_ERR_INVALID_ARGUMENT);
    recording = recording_of(5);
    recording.level = (enum tarn_context_level)9;
    assert_int_equal(tarn_torch_record_history(&recording, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_false(tarn_torch_is_recording());
    assert_null(tarn_torch_find_history(-1));
    assert_null(tarn_torch_find_history(TARN_TORCH_DEVICES_MAX));
    assert_int_equal(tarn_torch_capture(NULL, &snapshot, &error), TARN_ERR_NOT_FOUND);
    assert_non_null(strstr(error.text, "no device is in use"));
    assert_null(snapshot);
}

static void snapshots_of_all_devices(void **state)
{
    struct tarn_device *device = open_sim(6, 1024 * MIB);
    const struct tarn_capture_options options = {.struct_size = sizeof options, .device_count = 9};
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;
    void *ptr = tarn_torch_alloc(MIB, 6, NULL);
    bool failed = true;

    (void)state;
    for (uint64_t n = 1; failed && n < 1000; n++) {
        tarn_host_fail_nth(n);
        failed = tarn_torch_capture(&options, &snapshot, &error) != TARN_OK;
        tarn_host_fail_nth(0);
        assert_true(!failed || error.status == TARN_ERR_HOST_MEMORY);
        assert_true(n > 1 || failed);
    }
    assert_int_equal(tarn_snapshot_segment_count(snapshot), 1);
    tarn_snapshot_destroy(snapshot);
    tarn_torch_free(ptr, MIB, 6, NULL);
    close_sim(6, device);
}

static void after_the_end(void **state)
{
    char output[8192];
    const int status = run_self("end", output, sizeof output);

    (void)state;
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), CHILD_FINE);
}

static int end(void)
{
    struct tarn_device *device = open_sim(0, 1024 * MIB);
    void *ptr = tarn_torch_alloc(MIB, 0, NULL);
    struct tarn_allocator *allocator = NULL;
    struct tarn_sim_counters counters = {.struct_size = sizeof counters};
    const struct tarn_torch_recording recording = recording_of(5);
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error;

    tarn_torch_shutdown();
    tarn_torch_shutdown();
    tarn_sim_fail_nth(device, TARN_SIM_ANY, 1, TARN_ERR_DEVICE);
    tarn_torch_free(ptr, MIB, 0, NULL);
    tarn_torch_free(ptr, MIB, 0, NULL);
    tarn_torch_release_pool(0, (struct tarn_pool_id){0, 1});
    tarn_sim_get_counters(device, &counters);
    return counters.failures == 0 &&
                   tarn_torch_record_history(&recording, &error) == TARN_ERR_STATE &&
                   tarn_torch_capture(NULL, &snapshot, &error) == TARN_ERR_STATE &&
                   !tarn_torch_find_history(0) &&
                   tarn_torch_open_allocator(0, &allocator, &error) == TARN_ERR_STATE &&
                   strstr(error.text, "shut down")
               ? CHILD_FINE
               : CHILD_WRONG;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_has_one_allocator),
        cmocka_unit_test(wrong_devices_are_named),
        cmocka_unit_test(settings_reach_all_devices),
        cmocka_unit_test(opening_fails_and_works_again),
        cmocka_unit_test(a_pool_of_torchs_gets_null),
        cmocka_unit_test(history_without_an_interpreter),
        cmocka_unit_test(histories_that_are_refused),
        cmocka_unit_test(snapshots_of_all_devices),
        cmocka_unit_test(memory_that_runs_out_writes_a_file),
        cmocka_unit_test(a_forked_child_is_told),
        cmocka_unit_test(children_of_busy_threads_are_told),
        cmocka_unit_test(without_exceptions_the_process_ends),
        cmocka_unit_test(after_the_end),
    };

    program = argv[0];
    if (argc > 1 && strcmp(argv[1], "run-out") == 0) {
        run_out();
        return CHILD_WRONG;
    }
    if (argc > 1) {
        return end();
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
