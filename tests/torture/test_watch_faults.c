/* SPDX-License-Identifier: MIT */
/*
 * Watching a process while the system fails: publishing, listing, reading and requests run with the
 * first call of the system failing, then with the second, and so on, once of the calls that the
 * caller makes, and once of those that the threads of the publisher and of the server make. Each
 * time
 *
 *   - what fails says so, and without a failure everything works;
 *   - the allocator works all the same;
 *   - no descriptor, memory of the host, page or socket is left.
 *
 * And what has to know of forks is not started where the system cannot tell of them.
 */
#define _GNU_SOURCE /* RTLD_NEXT, accept4, pipe2 */
#undef _FORTIFY_SOURCE
#include "support/sim.h"
#include "support/temp.h"
#include "support/test.h"

#include "tarn/devices.h"
#include "tarn/history.h"
#include "tarn/host.h"
#include "tarn/observer.h"
#include "tarn/tracker.h"
#include "tarn/watch.h"
#include "tarn/watch_control.h"
#include "tarn/watch_read.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    PATIENCE_MS = 20000,
    ASK_MS = 5, /* an answer that a failure prevents is not waited for longer */
    STEPS_MAX = 16
};

/* ---- calls of the system ---- */

enum whose {
    NOBODY,
    OF_CALLER,
    OF_THREADS
};

static struct {
    _Atomic(int) whose;
    atomic_uint_fast64_t calls;
    uint64_t at; /* the call that fails, from 1 */
    int error;
    bool forks_fail; /* pthread_atfork has no memory */
    bool exits_fail; /* nor atexit, after so many calls */
    int exits_skipped;
    bool reads_only; /* no requests to the process */
} outside;

static _Thread_local bool is_caller;

static bool call_fails(void)
{
    const int whose = atomic_load(&outside.whose);

    if (whose == NOBODY || (whose == OF_CALLER) != is_caller ||
        atomic_fetch_add(&outside.calls, 1) + 1 != outside.at) {
        return false;
    }
    errno = outside.error;
    return true;
}

/* The function of that name behind this program's own, which has the same type. */
#define REAL(name)                                                                                 \
    __typeof__(&name) real;                                                                        \
    void *const found = dlsym(RTLD_NEXT, #name);                                                   \
    memcpy(&real, &found, sizeof real)

#ifdef __GLIBC__ /* unions of all kinds of addresses */
#define ADDRESS       __SOCKADDR_ARG
#define CONST_ADDRESS __CONST_SOCKADDR_ARG
#else
#define ADDRESS       struct sockaddr *
#define CONST_ADDRESS const struct sockaddr *
#endif

#define FAILING(type, failed, name, parameters, arguments)                                         \
    type name parameters                                                                           \
    {                                                                                              \
        REAL(name);                                                                                \
        return call_fails() ? (failed) : real arguments;                                           \
    }

FAILING(int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
FAILING(int, -1, lstat, (const char *path, struct stat *out), (path, out))
FAILING(int, -1, fstat, (int file, struct stat *out), (file, out))
FAILING(int, outside.error, posix_fallocate, (int file, off_t at, off_t size), (file, at, size))
FAILING(ssize_t, -1, read, (int file, void *bytes, size_t size), (file, bytes, size))
FAILING(ssize_t, -1, pread, (int file, void *bytes, size_t size, off_t at), (file, bytes, size, at))
FAILING(ssize_t, -1, pwrite, (int file, const void *bytes, size_t size, off_t at),
        (file, bytes, size, at))
FAILING(int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol))
FAILING(int, -1, chmod, (const char *path, mode_t mode), (path, mode))
FAILING(int, -1, fchmod, (int file, mode_t mode), (file, mode))
FAILING(int, -1, bind, (int file, CONST_ADDRESS address, socklen_t size), (file, address, size))
FAILING(int, -1, listen, (int file, int backlog), (file, backlog))
FAILING(int, -1, setsockopt, (int file, int level, int name, const void *value, socklen_t size),
        (file, level, name, value, size))
FAILING(int, -1, getsockopt, (int file, int level, int name, void *value, socklen_t *size),
        (file, level, name, value, size))
FAILING(int, -1, connect, (int file, CONST_ADDRESS address, socklen_t size), (file, address, size))
FAILING(int, -1, accept4, (int file, ADDRESS address, socklen_t *size, int flags),
        (file, address, size, flags))
FAILING(int, -1, poll, (struct pollfd * waits, nfds_t count, int ms), (waits, count, ms))
FAILING(ssize_t, -1, send, (int file, const void *bytes, size_t size, int flags),
        (file, bytes, size, flags))
FAILING(ssize_t, -1, recv, (int file, void *bytes, size_t size, int flags),
        (file, bytes, size, flags))
FAILING(int, -1, pipe2, (int ends[2], int flags), (ends, flags))
FAILING(DIR *, NULL, opendir, (const char *path), (path))
FAILING(int, outside.error, pthread_create,
        (pthread_t * thread, const pthread_attr_t *how, void *(*run)(void *), void *argument),
        (thread, how, run, argument))

/* Whether a snapshot is stored is asked elsewhere, and takes long. */
int fsync(int file)
{
    (void)file;
    return 0;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode = 0;
    REAL(open);

    if (flags & O_CREAT) {
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return call_fails() ? -1 : real(path, flags, mode);
}

void *mmap(void *address, size_t size, int protection, int flags, int file, off_t at)
{
    REAL(mmap);

    return file >= 0 && call_fails() ? MAP_FAILED
                                     : real(address, size, protection, flags, file, at);
}

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library);

int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return outside.forks_fail ? ENOMEM : __register_atfork(prepare, parent, child, NULL);
}

static void (*at_exit[8])(void);

static void at_exit_call(int status, void *at)
{
    (void)status;
    (*(void (**)(void))at)();
}

int atexit(void (*function)(void))
{
    static int count;

    if ((outside.exits_fail && outside.exits_skipped-- == 0) ||
        count == sizeof at_exit / sizeof *at_exit) {
        return -1;
    }
    at_exit[count] = function;
    return on_exit(at_exit_call, &at_exit[count++]);
}

/* ---- what runs ---- */

static struct temp_folder runtime;
static char snapshot_path[300];

/* What a round returned. */
struct round {
    enum tarn_status status[STEPS_MAX];
    unsigned count;
    unsigned failed;
};

static void step(struct round *round, enum tarn_status status, const struct tarn_error *error)
{
    assert_true(round->count < STEPS_MAX);
    round->status[round->count++] = status;
    if (status != TARN_OK) {
        round->failed++;
        assert_int_equal(error->status, status);
        assert_true(error->text[0] != '\0');
        assert_int_not_equal(status, TARN_ERR_INTERNAL);
    }
}

static bool visit(void *context, const struct tarn_watch_process *process)
{
    *(unsigned *)context += process->process == getpid();
    return true;
}

static void refuse(void *context, int64_t process, const struct tarn_error *reason)
{
    (void)process;
    assert_true(reason->text[0] != '\0');
    *(unsigned *)context += 1;
}

static void round_read(struct round *round)
{
    struct tarn_error error = {.text = ""};
    struct tarn_watch *watch = NULL;
    struct tarn_watch_record record = {.struct_size = sizeof record};
    unsigned seen = 0;
    enum tarn_status status = tarn_watch_list_all(runtime.path, visit, refuse, &seen, &error);

    step(round, status, &error);
    assert_true(status != TARN_OK || round->failed > 0 || seen == 1 || outside.at > 0);
    status = tarn_watch_open(runtime.path, getpid(), &watch, &error);
    step(round, status, &error);
    assert_true((status == TARN_OK) == (watch != NULL));
    if (watch) {
        const bool answered = tarn_watch_ask(watch, outside.at > 0 ? ASK_MS : PATIENCE_MS);

        round->failed += !answered;
        step(round, tarn_watch_read(watch, 0, &record, &error), &error);
        assert_true(tarn_watch_is_alive(watch) || outside.at > 0);
    }
    tarn_watch_close(watch);
}

static void round_control(struct round *round)
{
    struct tarn_error error = {.text = ""};
    const int64_t process = getpid();
    uint64_t reserved = 1;

    step(round, tarn_control_trim(runtime.path, process, 0, &reserved, PATIENCE_MS, &error),
         &error);
    assert_true(round->status[round->count - 1] != TARN_OK || reserved == 0);
    step(round, tarn_control_snapshot(runtime.path, process, snapshot_path, PATIENCE_MS, &error),
         &error);
    assert_true(round->status[round->count - 1] != TARN_OK || access(snapshot_path, F_OK) == 0);
    (void)unlink(snapshot_path);
    step(round, tarn_control_history(runtime.path, process, true, 100, PATIENCE_MS, &error),
         &error);
    step(round, tarn_control_history(runtime.path, process, false, 0, PATIENCE_MS, &error), &error);
}

static struct round round_run(struct tarn_allocator *allocator)
{
    const struct tarn_watch_options options = {.struct_size = sizeof options,
                                               .runtime_folder = runtime.path,
                                               .control = !outside.reads_only};
    struct tarn_error error = {.text = ""};
    struct round round = {.count = 0};
    const enum tarn_status status = tarn_watch_start(allocator, &options, &error);

    step(&round, status, &error);
    assert_true(tarn_watch_is_on(allocator) == (status == TARN_OK));
    round_read(&round);
    if (status == TARN_OK && !outside.reads_only) {
        round_control(&round);
    }
    tarn_watch_stop(allocator);
    return round;
}

/* ---- failures ---- */

static unsigned names_in(const char *path)
{
    DIR *folder = opendir(path);
    unsigned count = 0;

    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        count += entry->d_name[0] != '.';
    }
    if (folder) {
        (void)closedir(folder);
    }
    return count;
}

static void expect_nothing_left(const char *what, unsigned descriptors)
{
    char folder[300];

    (void)snprintf(folder, sizeof folder, "%s/tarn", runtime.path);
    if (names_in(folder) != 0 || names_in("/proc/self/fd") != descriptors) {
        fail_msg("%s call %llu with error %d: %u files, %d descriptors left", what,
                 (unsigned long long)outside.at, outside.error, names_in(folder),
                 (int)names_in("/proc/self/fd") - (int)descriptors);
    }
}

static struct round round_outside(struct tarn_allocator *allocator, enum whose whose, uint64_t at)
{
    outside.at = at;
    atomic_store(&outside.calls, 0);
    atomic_store(&outside.whose, whose);
    const struct round round = round_run(allocator);

    atomic_store(&outside.whose, NOBODY);
    return round;
}

static void expect_it_allocates(struct tarn_allocator *allocator)
{
    tarn_ptr ptr = 0;

    assert_int_equal(tarn_allocator_alloc(allocator, 512, 0, &ptr, NULL), TARN_OK);
    assert_int_equal(tarn_allocator_free(allocator, ptr, NULL), TARN_OK);
}

/* Each call of one side fails; returns in how many rounds something was noticed. */
static unsigned calls_fail(struct tarn_allocator *allocator, enum whose whose, int error)
{
    unsigned noticed = 0;

    outside.error = error;
    assert_int_equal(round_outside(allocator, whose, 0).failed, 0);
    const uint64_t calls = atomic_load(&outside.calls);
    const unsigned descriptors = names_in("/proc/self/fd");

    expect_it_allocates(allocator);
    const uint64_t live = tarn_host_get_usage().live_bytes;

    assert_true(calls > 0);
    for (uint64_t n = 1; n <= calls; n++) {
        noticed += round_outside(allocator, whose, n).failed > 0;
        expect_nothing_left(whose == OF_CALLER ? "caller's" : "threads'", descriptors);
        expect_it_allocates(allocator);
    }
    assert_int_equal(round_outside(allocator, NOBODY, 0).failed, 0);
    expect_it_allocates(allocator);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    return noticed;
}

/* ---- tests ---- */

static struct tarn_allocator *allocator_make(struct tarn_device **device_out)
{
    struct tarn_allocator *allocator = NULL;

    *device_out = sim_open(GIB);
    assert_int_equal(tarn_allocator_create(*device_out, NULL, &allocator, NULL), TARN_OK);
    return allocator;
}

static void without_notice_of_forks_nothing_starts(void **state)
{
    const struct tarn_watch_options options = {
        .struct_size = sizeof options, .runtime_folder = runtime.path, .control = true};
    struct tarn_device *device = NULL;
    struct tarn_allocator *allocator = NULL;
    struct tarn_observer *observer = NULL;
    struct tarn_devices *devices = NULL;
    struct tarn_history *history = NULL;
    struct tarn_tracker *tracker = NULL;
    const uint64_t live = tarn_host_get_usage().live_bytes;
    struct tarn_error error = {.text = ""};

    (void)state;
    outside.forks_fail = true;
    assert_int_equal(tarn_history_create(NULL, &history, &error), TARN_ERR_HOST_MEMORY);
    assert_int_equal(tarn_tracker_create(NULL, &tracker, &error), TARN_ERR_HOST_MEMORY);
    assert_int_equal(tarn_observer_create(0, NULL, TARN_CONTEXT_ALL, &observer, &error),
                     TARN_ERR_HOST_MEMORY);
    assert_int_equal(tarn_devices_create(&devices, &error), TARN_OK);
    assert_int_equal(tarn_devices_open(devices, 0, &allocator, &error), TARN_ERR_HOST_MEMORY);
    assert_null(allocator);
    tarn_devices_destroy(devices);
    assert_int_equal(tarn_host_get_usage().live_bytes, live);
    outside.forks_fail = false;
    outside.exits_fail = true;
    allocator = allocator_make(&device);
    assert_int_equal(tarn_watch_start(allocator, &options, &error), TARN_ERR_HOST_MEMORY);
    assert_false(tarn_watch_is_on(allocator));
    outside.exits_skipped = 1; /* that of the publisher: it is watched, but takes no requests */
    assert_int_equal(tarn_watch_start(allocator, &options, &error), TARN_OK);
    assert_int_equal(tarn_control_trim(runtime.path, getpid(), 0, NULL, PATIENCE_MS, &error),
                     TARN_ERR_NOT_FOUND);
    tarn_watch_stop(allocator);
    outside.exits_fail = false;
    assert_int_equal(round_run(allocator).failed, 0);
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

static void every_call_fails_once(void **state)
{
    struct tarn_device *device = NULL;
    struct tarn_allocator *allocator = allocator_make(&device);

    (void)state;
    assert_true(calls_fail(allocator, OF_CALLER, EIO) > 20);
    assert_true(calls_fail(allocator, OF_THREADS, EIO) > 3);
    outside.reads_only = true;
    assert_true(calls_fail(allocator, OF_CALLER, EACCES) > 10);
    outside.reads_only = false;
    tarn_allocator_destroy(allocator);
    sim_close(device);
}

static int begin(void **state)
{
    (void)state;
    is_caller = true;
    runtime = temp_folder_make();
    (void)snprintf(snapshot_path, sizeof snapshot_path, "%s/now.pickle", runtime.path);
    tarn_control_enable();
    return 0;
}

static int end(void **state)
{
    char folder[300];

    (void)state;
    (void)snprintf(folder, sizeof folder, "%s/tarn", runtime.path);
    (void)rmdir(folder);
    return rmdir(runtime.path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_notice_of_forks_nothing_starts),
        cmocka_unit_test(every_call_fails_once),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
