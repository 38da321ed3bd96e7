/* SPDX-License-Identifier: MIT */
/*
 * Files and sockets that processes of one user share, where a call of the system fails, and where
 * somebody else owns what is found. The functions of the system are replaced here by ones that
 * fail when told, and that know another owner.
 */
#define _GNU_SOURCE    /* accept4, struct ucred, syscall */
#undef _FORTIFY_SOURCE /* whose functions are inline */
#include "support/temp.h"
#include "support/test.h"

#include "base/os_process.h"
#include "base/os_shared.h"
#include "base/os_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    STRANGER = 4711,
    CALLS_MAX = 20
};

static struct {
    int at; /* the call that fails, from 1; 0 = none */
    int calls;
    uid_t user;  /* who this process is */
    uid_t owner; /* of every file, and of who connects */
    bool has_run_user;
    bool has_second_disk; /* on which what is looked up by path lies */
} outside;

/* ---- the system ---- */

/* glibc declares addresses of sockets as a union of pointers. */
#pragma GCC diagnostic ignored "-Wpedantic"

static bool fails(void)
{
    errno = ++outside.calls == outside.at ? EIO : errno;
    return outside.calls == outside.at;
}

uid_t geteuid(void)
{
    return outside.user;
}

int socket(int domain, int type, int protocol)
{
    return fails() ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int bind(int socket, const struct sockaddr *address, socklen_t size)
{
    return fails() ? -1 : (int)syscall(SYS_bind, socket, address, size);
}

int listen(int socket, int backlog)
{
    return fails() ? -1 : (int)syscall(SYS_listen, socket, backlog);
}

int connect(int socket, const struct sockaddr *address, socklen_t size)
{
    return fails() ? -1 : (int)syscall(SYS_connect, socket, address, size);
}

int accept4(int socket, struct sockaddr *address, socklen_t *size, int flags)
{
    return fails() ? -1 : (int)syscall(SYS_accept4, socket, address, size, flags);
}

int setsockopt(int socket, int level, int option, const void *value, socklen_t size)
{
    return fails() ? -1 : (int)syscall(SYS_setsockopt, socket, level, option, value, size);
}

int getsockopt(int socket, int level, int option, void *value, socklen_t *size)
{
    if (fails() || syscall(SYS_getsockopt, socket, level, option, value, size) != 0) {
        return -1;
    }
    if (option == SO_PEERCRED) {
        ((struct ucred *)value)->uid = outside.owner;
    }
    return 0;
}

int fchmod(int file, mode_t mode)
{
    return fails() ? -1 : (int)syscall(SYS_fchmod, file, mode);
}

int chmod(const char *path, mode_t mode)
{
    return fails() ? -1 : (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    return fails() ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}

int open(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;

    va_end(arguments);
    return fails() ? -1 : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int posix_fallocate(int file, off_t offset, off_t size)
{
    return fails() ? EIO : ftruncate(file, offset + size) == 0 ? 0 : errno;
}

int lstat(const char *restrict path, struct stat *restrict found_out)
{
    const bool is_run_user = strncmp(path, "/run/user/", 10) == 0;

    if (fails()) {
        return -1;
    }
    if (is_run_user) {
        *found_out = (struct stat){.st_mode = S_IFDIR | 0700};
        errno = ENOENT;
    }
    const int status = is_run_user ? -!outside.has_run_user
                                   : fstatat(AT_FDCWD, path, found_out, AT_SYMLINK_NOFOLLOW);

    found_out->st_uid = outside.owner;
    found_out->st_dev += outside.has_second_disk;
    return status;
}

int fstat(int file, struct stat *found_out)
{
    const int status = fails() ? -1 : fstatat(file, "", found_out, AT_EMPTY_PATH);

    found_out->st_uid = outside.owner;
    return status;
}

/* ---- folders ---- */

static char folder[256];

static const char *path_in(const char *name)
{
    static char path[512];

    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int begin(void **state)
{
    (void)state;
    (void)snprintf(folder, sizeof folder, "%s", temp_folder_make().path);
    return 0;
}

static int end(void **state)
{
    (void)state;
    return rmdir(folder); /* nothing is left */
}

static void be(uid_t user, uid_t owner)
{
    outside.user = user;
    outside.owner = owner;
    outside.at = 0;
    outside.calls = 0;
}

/* A descriptor that is open now: the same before and after, if none leaks. */
static int next_descriptor(void)
{
    const int next = dup(0);

    (void)close(next);
    return next;
}

static void file_make(const char *path)
{
    const int file = (int)syscall(SYS_openat, AT_FDCWD, path, O_CREAT | O_RDWR, 0600);

    assert_true(file >= 0);
    assert_int_equal(write(file, "content", 7), 7);
    (void)close(file);
}

/* ---- every call fails once ---- */

/* Calls `attempt`, which returns a descriptor, with its first call failing, then its second, and so
 * on. Returns how many there are. */
static int each_call_fails(int (*attempt)(void))
{
    const int next = next_descriptor();
    int n = 0;

    while (true) {
        be(STRANGER, STRANGER);
        outside.at = ++n;
        const int descriptor = attempt();

        assert_true(n < CALLS_MAX);
        if (outside.calls < n) {
            assert_true(descriptor >= 0);
            tn_os_descriptor_close(descriptor);
            outside.at = 0;
            return n - 1;
        }
        assert_int_equal(descriptor, -1);
        assert_int_equal(next_descriptor(), next);
    }
}

static int attempt_listen(void)
{
    const int listener = tn_os_socket_listen(path_in("socket"));

    if (listener < 0) {
        assert_int_equal(errno, EIO);
    }
    return listener;
}

static void listening_may_fail(void **state)
{
    (void)state;
    assert_int_equal(each_call_fails(attempt_listen), 5);
    (void)unlink(path_in("socket"));
}

static int listener;

static int attempt_connect(void)
{
    const int to = tn_os_socket_connect(path_in("socket"), 100);

    if (to < 0) {
        assert_int_equal(errno, EIO);
    }
    return to;
}

static int attempt_accept(void)
{
    const int failing = outside.at;
    bool woken = true;

    outside.at = 0;
    const int client = tn_os_socket_connect(path_in("socket"), 100);

    outside.at = failing;
    outside.calls = 0;
    assert_true(client >= 0);
    const int accepted = tn_os_socket_accept(listener, -1, 1000, &woken);

    assert_false(woken);
    tn_os_descriptor_close(client);
    if (accepted < 0 && failing == 1) { /* who was not accepted is there still */
        outside.at = 0;
        const int late = tn_os_socket_accept(listener, -1, 1000, &woken);

        tn_os_descriptor_close(late);
        outside.calls = failing;
    }
    return accepted;
}

static void connections_may_fail(void **state)
{
    bool woken = true;
    int ends[2];

    (void)state;
    be(STRANGER, STRANGER);
    assert_int_equal(tn_os_socket_connect(path_in("socket"), 100), -1);
    assert_int_equal(errno, ENOENT);
    listener = tn_os_socket_listen(path_in("socket"));
    assert_true(listener >= 0);
    assert_int_equal(tn_os_socket_accept(listener, -1, 0, &woken), -1); /* nobody is there */
    assert_false(woken);
    assert_int_equal(each_call_fails(attempt_accept), 4);
    assert_int_equal(each_call_fails(attempt_connect), 4);
    assert_true(tn_os_pipe(ends));
    tn_os_pipe_write(ends[1]);
    assert_int_equal(tn_os_socket_accept(listener, ends[0], 1000, &woken), -1);
    assert_true(woken);
    tn_os_descriptor_close(ends[0]);
    tn_os_descriptor_close(ends[1]);
    tn_os_descriptor_close(listener);
    (void)unlink(path_in("socket"));
}

static void strangers_are_sent_away(void **state)
{
    static const struct {
        uid_t user;
        uid_t peer;
        bool welcome;
    } cases[] = {{1000, 1000, true}, {1000, 0, true}, {1000, 1001, false}, {0, 1000, false}};
    bool woken;
    char byte = 0;

    (void)state;
    be(1000, 1000);
    listener = tn_os_socket_listen(path_in("socket"));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        be(cases[i].user, cases[i].peer);
        const int client = tn_os_socket_connect(path_in("socket"), 100);
        const int accepted = tn_os_socket_accept(listener, -1, 1000, &woken);

        assert_int_equal(accepted >= 0, cases[i].welcome);
        assert_false(woken);
        if (accepted >= 0) {
            assert_true(tn_os_socket_send(accepted, "x", 1));
            tn_os_descriptor_close(accepted);
        }
        assert_int_equal(tn_os_socket_receive(client, &byte, 1), cases[i].welcome);
        tn_os_descriptor_close(client);
    }
    tn_os_descriptor_close(listener);
    (void)unlink(path_in("socket"));
}

static void a_path_may_be_too_long(void **state)
{
    char long_path[300] = "/tmp/";

    (void)state;
    memset(long_path + 5, 'x', sizeof long_path - 6);
    be(1000, 1000);
    assert_int_equal(tn_os_socket_listen(long_path), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(tn_os_socket_connect(long_path, 10), -1);
    assert_int_equal(errno, ENAMETOOLONG);
    assert_int_equal(outside.calls, 0);
    char path[TN_FOLDER_PATH_MAX];

    assert_false(tn_os_folder_private(long_path, "tarn", false, path));
    assert_int_equal(errno, ENAMETOOLONG);
}

/* ---- whose folder ---- */

static void expect_folder(const char *runtime, bool create, bool good, const char *expected)
{
    char path[TN_FOLDER_PATH_MAX] = "";
    const bool found = tn_os_folder_private(runtime, "tarn", create, path);

    assert_int_equal(found, good);
    assert_string_equal(path, expected);
}

static void folders_belong_to_the_user(void **state)
{
    char own[512];

    (void)state;
    (void)snprintf(own, sizeof own, "%s/tarn", folder);
    be(1000, 1000);
    expect_folder(folder, false, false, own);
    assert_int_equal(errno, ENOENT);
    outside.at = outside.calls + 1;
    expect_folder(folder, true, false, own);
    assert_int_equal(errno, EIO);
    be(1000, 1000);
    expect_folder(folder, true, true, own);
    expect_folder(folder, true, true, own); /* it is there */
    be(1000, 1001);
    expect_folder(folder, false, false, own);
    assert_int_equal(errno, EPERM);
    be(0, 1001);
    expect_folder(folder, false, true, own); /* root may look, */
    expect_folder(folder, true, false, own); /* but not publish there */
    assert_int_equal(errno, EPERM);
    be(1000, 1000);
    assert_int_equal(chmod(own, 0750), 0);
    expect_folder(folder, false, false, own);
    assert_int_equal(errno, EPERM);
    assert_int_equal(rmdir(own), 0);
    file_make(own);
    expect_folder(folder, true, false, own);
    assert_int_equal(errno, EPERM);
    assert_int_equal(unlink(own), 0);
}

static void without_a_runtime_folder_there_are_others(void **state)
{
    (void)state;
    be(STRANGER, STRANGER);
    outside.has_run_user = true;
    expect_folder(NULL, false, true, "/run/user/4711/tarn");
    expect_folder("relative", false, true, "/run/user/4711/tarn");
    char path[TN_FOLDER_PATH_MAX];
    char long_name[TN_FOLDER_PATH_MAX];

    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    assert_false(tn_os_folder_private(NULL, long_name, false, path));
    assert_int_equal(errno, ENAMETOOLONG);
    outside.calls = 0;
    outside.at = 2; /* that of the folder, behind that of its parent */
    expect_folder(NULL, false, false, "/run/user/4711/tarn");
    assert_int_equal(errno, EIO);
    outside.at = 0;
    outside.has_run_user = false;
    expect_folder(NULL, false, false, "/tmp/tarn-4711");
    assert_int_equal(errno, ENOENT);
    be(STRANGER, 1000);
    outside.has_run_user = true; /* of somebody else */
    expect_folder("", false, false, "/tmp/tarn-4711");
}

/* ---- files ---- */

static void a_shared_file_is_there_or_not(void **state)
{
    (void)state;
    for (int n = 1; n <= 3; n++) {
        be(1000, 1000);
        outside.at = n;
        void *memory = tn_os_shared_create(path_in("page"), 4096);

        assert_int_equal(memory != NULL, n == 3);
        if (n < 3) {
            assert_int_equal(errno, EIO);
        }
        outside.at = 0;
        assert_int_equal(tn_os_shared_exists(path_in("page")), n == 3);
        tn_os_shared_unmap(memory, 4096);
    }
    tn_os_shared_remove(path_in("page"));
    assert_null(tn_os_shared_map(-1, 4096));
    tn_os_shared_unmap(NULL, 4096);
}

static void only_plain_files_of_the_user_are_opened(void **state)
{
    bool writable = false;
    char content[8] = "";

    (void)state;
    be(1000, 1000);
    assert_int_equal(tn_os_shared_open(path_in("page"), &writable), -1);
    assert_int_equal(errno, ENOENT);
    file_make(path_in("page"));
    int file = tn_os_shared_open(path_in("page"), &writable);

    assert_true(file >= 0 && writable);
    assert_true(tn_os_shared_read(file, 3, content, 4));
    assert_string_equal(content, "tent");
    assert_false(tn_os_shared_read(file, 4, content, 4)); /* it ends before */
    tn_os_descriptor_close(file);
    be(1000, 1000);
    outside.at = 1; /* not for writing */
    file = tn_os_shared_open(path_in("page"), &writable);
    assert_true(file >= 0 && !writable);
    tn_os_descriptor_close(file);
    be(1000, 1000);
    outside.at = 2; /* fstat */
    assert_int_equal(tn_os_shared_open(path_in("page"), &writable), -1);
    assert_int_equal(errno, EPERM);
    be(1000, 1001);
    assert_int_equal(tn_os_shared_open(path_in("page"), &writable), -1);
    assert_int_equal(errno, EPERM);
    be(0, 1001);
    file = tn_os_shared_open(path_in("page"), &writable);
    assert_true(file >= 0);
    tn_os_descriptor_close(file);
    be(1000, 1000);
    assert_int_equal(unlink(path_in("page")), 0);
    assert_int_equal(mkfifo(path_in("page"), 0600), 0);
    assert_int_equal(tn_os_shared_open(path_in("page"), &writable), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(unlink(path_in("page")), 0);
}

/* What somebody else has put in the place of a file stays. */
static void only_the_same_file_is_removed(void **state)
{
    char path[512];

    (void)state;
    be(1000, 1000);
    (void)snprintf(path, sizeof path, "%s", path_in("page"));
    file_make(path);
    const int file = open(path, O_RDONLY);

    assert_int_equal(rename(path, path_in("old")), 0);
    tn_os_shared_remove_same(file, path); /* nothing is there */
    file_make(path);
    tn_os_shared_remove_same(file, path);
    assert_true(tn_os_shared_exists(path));
    outside.at = outside.calls + 1;
    tn_os_shared_remove_same(file, path_in("old"));
    assert_true(tn_os_shared_exists(path_in("old")));
    outside.has_second_disk = true; /* where another file has the same number */
    tn_os_shared_remove_same(file, path_in("old"));
    outside.has_second_disk = false;
    assert_true(tn_os_shared_exists(path_in("old")));
    tn_os_shared_remove_same(file, path_in("old"));
    assert_false(tn_os_shared_exists(path_in("old")));
    tn_os_descriptor_close(file);
    assert_int_equal(unlink(path), 0);
}

static bool count_names(void *context, const char *name)
{
    assert_true(name[0] != '\0');
    return --*(int *)context > 0;
}

static void a_list_may_end_early(void **state)
{
    int left = 2;

    (void)state;
    be(1000, 1000);
    assert_false(tn_os_folder_list(path_in("none"), count_names, &left));
    file_make(path_in("a"));
    assert_true(tn_os_folder_list(folder, count_names, &left)); /* of ".", ".." and "a" */
    assert_int_equal(left, 0);
    left = 100;
    assert_true(tn_os_folder_list(folder, count_names, &left));
    assert_int_equal(left, 97);
    assert_int_equal(unlink(path_in("a")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(listening_may_fail),
        cmocka_unit_test(connections_may_fail),
        cmocka_unit_test(strangers_are_sent_away),
        cmocka_unit_test(a_path_may_be_too_long),
        cmocka_unit_test(folders_belong_to_the_user),
        cmocka_unit_test(without_a_runtime_folder_there_are_others),
        cmocka_unit_test(a_shared_file_is_there_or_not),
        cmocka_unit_test(only_plain_files_of_the_user_are_opened),
        cmocka_unit_test(only_the_same_file_is_removed),
        cmocka_unit_test(a_list_may_end_early),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
