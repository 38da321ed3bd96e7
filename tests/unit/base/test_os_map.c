/* SPDX-License-Identifier: MIT */
/* Memory objects where calls of the system fail, and descriptors that are none. */
#define _GNU_SOURCE    /* RTLD_NEXT, memfd_create, F_ADD_SEALS */
#undef _FORTIFY_SOURCE /* whose functions are inline */
#include "support/failing.h"
#include "support/temp.h"
#include "support/test.h"

#include "base/os_map.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    SIZE = 1 << 16
};

FAILING(ssize_t, -1, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags))
FAILING(int, -1, memfd_create, (const char *name, unsigned flags), (name, flags))
FAILING(int, -1, ftruncate, (int file, off_t size), (file, size))
FAILING(int, -1, fstat, (int file, struct stat *out), (file, out))
FAILING(ssize_t, -1, readlink, (const char *path, char *out, size_t size), (path, out, size))
FAILING(void *, MAP_FAILED, mmap, (void *at, size_t size, int may, int flags, int file, off_t from),
        (at, size, may, flags, file, from))

int fcntl(int file, int command, ...)
{
    __typeof__(&fcntl) real;
    void *const found = dlsym(RTLD_NEXT, "fcntl");
    va_list list;

    memcpy(&real, &found, sizeof real);
    va_start(list, command);
    const long argument = va_arg(list, long);

    va_end(list);
    return command == F_ADD_SEALS && call_is_failing("fcntl") ? -1 : real(file, command, argument);
}

int open(const char *path, int flags, ...)
{
    va_list list;

    va_start(list, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;

    va_end(list);
    return call_is_failing("open") ? -1 : openat(AT_FDCWD, path, flags, mode);
}

/* A descriptor that is open now: the same before and after, if none leaks. */
static int next_descriptor(void)
{
    const int next = dup(0);

    (void)close(next);
    return next;
}

static void an_object_is_made_whole_or_not(void **state)
{
    static const char *const calls[] = {"getrandom", "memfd_create", "ftruncate", "fcntl"};
    const int next = next_descriptor();

    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fail_calls(calls[i], 0, 1, EMFILE);
        assert_int_equal(tn_os_object_open(SIZE), -1);
        assert_true(fail_none());
        assert_int_equal(next_descriptor(), next);
    }
    tn_os_object_close(-1);
}

static void an_object_is_opened_again_or_not(void **state)
{
    const int object = tn_os_object_open(SIZE);
    const int next = next_descriptor();
    uint64_t cookies[2] = {0, 1};
    uint64_t sizes[2] = {0, 1};

    (void)state;
    assert_true(object >= 0);
    fail_calls("readlink", 0, 1, EACCES); /* of /proc */
    assert_int_equal(tn_os_object_reopen(getpid(), object), -1);
    assert_true(fail_none());
    for (int skip = 0; skip < 3; skip++) { /* as a path, to look at it, to write */
        fail_calls("open", skip, 1, EMFILE);
        assert_int_equal(tn_os_object_reopen(getpid(), object), -1);
        assert_true(fail_none());
    }
    fail_calls("fstat", 0, 1, EIO);
    assert_int_equal(tn_os_object_reopen(getpid(), object), -1);
    assert_true(fail_none());
    fail_calls("readlink", 1, 1, EIO);
    assert_int_equal(tn_os_object_reopen(getpid(), object), -1);
    assert_true(fail_none());
    assert_int_equal(next_descriptor(), next);
    const int again = tn_os_object_reopen(getpid(), object);

    assert_true(again >= 0);
    assert_true(tn_os_object_identity(object, &cookies[0], &sizes[0]));
    assert_true(tn_os_object_identity(again, &cookies[1], &sizes[1]));
    assert_true(cookies[0] == cookies[1]);
    assert_int_equal(sizes[0], SIZE);
    assert_int_equal(sizes[1], SIZE);
    tn_os_object_close(again);
    tn_os_object_close(object);
}

static int sealed_make(const char *name)
{
    const int file = memfd_create(name, MFD_ALLOW_SEALING);

    assert_true(file >= 0);
    assert_int_equal(fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
    return file;
}

static void other_files_are_no_objects(void **state)
{
    const int unsealed = memfd_create("tarn-0123456789abcdef", MFD_ALLOW_SEALING);
    const int others[] = {
        unsealed,
        sealed_make("other"),
        sealed_make("tarn-xyz"),
        sealed_make("tarn-0123456789ABCDEF"),
        sealed_make("tarn-0123456789abcdef0"),
    };
    struct temp_file plain = temp_write("plain", 5);
    const int file = open(plain.path, O_RDONLY);
    uint64_t cookie;
    uint64_t size;

    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        assert_false(tn_os_object_identity(others[i], &cookie, &size));
        assert_int_equal(tn_os_object_reopen(getpid(), others[i]), -1);
        assert_int_equal(close(others[i]), 0);
    }
    assert_false(tn_os_object_identity(file, &cookie, &size));
    assert_int_equal(tn_os_object_reopen(getpid(), file), -1);
    assert_int_equal(close(file), 0);
    assert_false(tn_os_object_identity(file, &cookie, &size)); /* closed */
    assert_int_equal(tn_os_object_reopen(getpid(), file), -1);
    temp_remove(&plain);
}

static void ranges_need_address_space(void **state)
{
    (void)state;
    fail_calls("mmap", 0, 1, ENOMEM);
    assert_null(tn_os_range_reserve(SIZE, false));
    assert_true(fail_none());
    tn_os_range_release(NULL, SIZE);
    void *range = tn_os_range_reserve(SIZE, true);

    assert_non_null(range);
    memset(range, 7, SIZE);
    fail_calls("mmap", 0, 1, ENOMEM);
    assert_false(tn_os_range_clear(range, SIZE));
    assert_true(fail_none());
    assert_int_equal(*(char *)range, 7); /* as it was */
    assert_true(tn_os_range_clear(range, SIZE));
    assert_false(tn_os_object_map(-1, range, SIZE));
    tn_os_range_release(range, SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_made_whole_or_not),
        cmocka_unit_test(an_object_is_opened_again_or_not),
        cmocka_unit_test(other_files_are_no_objects),
        cmocka_unit_test(ranges_need_address_space),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
