/* SPDX-License-Identifier: MIT */
#define _GNU_SOURCE    /* O_TMPFILE, RTLD_NEXT, syscall */
#undef _FORTIFY_SOURCE /* whose functions are inline */
#include "support/failing.h"
#include "support/temp.h"
#include "support/test.h"

#include "tarn/host.h"
#include "tarn/writer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <zstd.h>

/* Whether the file systems have no unnamed files, as NFS and many others. */
static bool refuses_unnamed;

/* In place of that of the C library. */
int open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode = 0;

    if (refuses_unnamed && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (call_is_failing("open")) {
        return -1;
    }
    if (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE) {
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

FAILING(int, -1, access, (const char *path, int mode), (path, mode))
FAILING(int, -1, fstat, (int file, struct stat *out), (file, out))
FAILING(int, -1, fsync, (int file), (file))
FAILING(int, -1, fchown, (int file, uid_t user, gid_t group), (file, user, group))
FAILING(int, -1, linkat, (int from_at, const char *from, int to_at, const char *to, int flags),
        (from_at, from, to_at, to, flags))
FAILING(ssize_t, failing.error ? -1 : 0, write, (int file, const void *bytes, size_t size),
        (file, bytes, size))
int __xpg_strerror_r(int number, char *out, size_t size); /* strerror_r of POSIX, in glibc */

FAILING(int, EINVAL, __xpg_strerror_r, (int number, char *out, size_t size), (number, out, size))

FAILING(size_t, (size_t)-64, ZSTD_compressStream2,
        (ZSTD_CCtx * context, ZSTD_outBuffer *out, ZSTD_inBuffer *in, ZSTD_EndDirective end),
        (context, out, in, end))

/* As of Linux: closed in any case. */
int close(int file)
{
    const int result = (int)syscall(SYS_close, file);

    return call_is_failing("close") ? -1 : result;
}

/* A folder of its own, and a path in it. */
struct place {
    struct temp_folder folder;
    char path[600];
};

static struct place place_make(void)
{
    struct place place = {.folder = temp_folder_make()};

    (void)snprintf(place.path, sizeof place.path, "%s/report", place.folder.path);
    return place;
}

/* Fails when something else than the file at `path` is left there. */
static void place_remove(struct place *place)
{
    (void)unlink(place->path);
    temp_folder_remove(&place->folder);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void put(struct tarn_file *file, const char *text)
{
    const struct tarn_writer writer = tarn_file_writer(file);

    assert_int_equal(writer.write(writer.context, text, strlen(text)), TARN_OK);
}

static void contains(const char *path, const char *expected)
{
    char text[64] = "";
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_string_equal(text, expected);
}

static void it_appears_in_the_end(void **state)
{
    struct place place = place_make();
    struct tarn_file *file;

    (void)state;
    assert_int_equal(tarn_file_create(place.path, &file, NULL), TARN_OK);
    put(file, "one ");
    assert_int_not_equal(access(place.path, F_OK), 0);
    put(file, "two");
    assert_int_equal(tarn_file_finish(file, TARN_OK, NULL), TARN_OK);
    contains(place.path, "one two");
    assert_int_equal(tarn_file_create(place.path, &file, NULL), TARN_OK);
    put(file, "three");
    contains(place.path, "one two");
    assert_int_equal(tarn_file_finish(file, TARN_OK, NULL), TARN_OK);
    contains(place.path, "three");
    place_remove(&place);
}

static void a_failed_report_leaves_none(void **state)
{
    struct place place = place_make();
    struct tarn_file *file;

    (void)state;
    assert_int_equal(tarn_file_create(place.path, &file, NULL), TARN_OK);
    put(file, "half");
    assert_int_equal(tarn_file_finish(file, TARN_ERR_HOST_MEMORY, NULL), TARN_ERR_HOST_MEMORY);
    assert_int_not_equal(access(place.path, F_OK), 0);
    place_remove(&place);
}

static void devices_and_pipes_are_written_as_they_are(void **state)
{
    struct place place = place_make();
    struct tarn_file *file;
    struct tarn_error error;
    struct stat about;

    (void)state;
    assert_int_equal(symlink("/dev/null", place.path), 0);
    assert_int_equal(tarn_file_create(place.path, &file, NULL), TARN_OK);
    put(file, "gone");
    assert_int_equal(tarn_file_finish(file, TARN_OK, NULL), TARN_OK);
    assert_int_equal(lstat(place.path, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(tarn_file_create("/dev/full", &file, NULL), TARN_OK);
    const struct tarn_writer writer = tarn_file_writer(file);
    const enum tarn_status status = writer.write(writer.context, "x", 1);
    assert_int_equal(status, TARN_ERR_IO);
    assert_int_equal(tarn_file_finish(file, status, &error), TARN_ERR_IO);
    assert_non_null(strstr(error.text, "cannot write /dev/full: "));
    place_remove(&place);
}

/* Makes a file at the path, by way of the draft. */
static void file_make(const char *path, const char *text)
{
    struct tarn_file *file;

    assert_int_equal(tarn_file_create(path, &file, NULL), TARN_OK);
    put(file, text);
    assert_int_equal(tarn_file_finish(file, TARN_OK, NULL), TARN_OK);
}

static unsigned mode_of(const char *path)
{
    struct stat about;

    assert_int_equal(lstat(path, &about), 0);
    return about.st_mode & 07777;
}

static size_t files_in(const struct place *place)
{
    DIR *folder = opendir(place->folder.path);
    size_t count = 0;

    assert_non_null(folder);
    while (readdir(folder)) { /* NOLINT(concurrency-mt-unsafe): one thread */
        count++;
    }
    assert_int_equal(closedir(folder), 0);
    return count - 2; /* "." and ".." */
}

/* So it is gone however the process ends. */
static void a_draft_has_no_name(void **state)
{
    struct place place = place_make();
    const int probe = open(place.folder.path, O_TMPFILE | O_WRONLY, 0600);
    struct tarn_file *file;

    (void)state;
    if (probe < 0) {
        place_remove(&place);
        (void)printf("skip: this file system has no unnamed files\n");
        skip();
    }
    assert_int_equal(close(probe), 0);
    for (size_t old = 0; old < 2; old++) {
        assert_int_equal(tarn_file_create(place.path, &file, NULL), TARN_OK);
        put(file, "half");
        assert_string_equal(tarn_file_draft(file), "");
        assert_int_equal(files_in(&place), old);
        assert_int_equal(tarn_file_finish(file, TARN_OK, NULL), TARN_OK);
        assert_int_equal(files_in(&place), 1);
    }
    place_remove(&place);
}

static void drafts_have_names_of_their_own(void **state)
{
    struct place place = place_make();
    struct tarn_file *files[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tarn_file_create(place.path, &files[i], NULL), TARN_OK);
        put(files[i], i ? "second" : "first");
        assert_int_equal(access(tarn_file_draft(files[i]), F_OK), 0);
    }
    assert_string_not_equal(tarn_file_draft(files[0]), tarn_file_draft(files[1]));
    assert_int_equal(tarn_file_finish(files[1], TARN_OK, NULL), TARN_OK);
    contains(place.path, "second");
    assert_int_equal(tarn_file_finish(files[0], TARN_OK, NULL), TARN_OK);
    contains(place.path, "first");
    assert_int_equal(tarn_file_create("/dev/null", &files[0], NULL), TARN_OK);
    assert_string_equal(tarn_file_draft(files[0]), "");
    assert_int_equal(tarn_file_finish(files[0], TARN_OK, NULL), TARN_OK);
    place_remove(&place);
}

static void the_longest_name_has_a_draft(void **state)
{
    struct place place = place_make();
    const size_t used = strlen(place.folder.path) + 1;

    (void)state;
    memset(place.path + used, 'n', 255);
    place.path[used + 255] = '\0';
    file_make(place.path, "long");
    contains(place.path, "long");
    place_remove(&place);
}

static void links_are_replaced_and_not_followed(void **state)
{
    struct place place = place_make();
    char other[620];
    struct stat about;

    (void)state;
    (void)snprintf(other, sizeof other, "%s/other", place.folder.path);
    file_make(other, "precious");
    for (int exists = 1; exists >= 0; exists--) {
        assert_int_equal(symlink(other, place.path), 0);
        file_make(place.path, "report");
        assert_int_equal(lstat(place.path, &about), 0);
        assert_true(S_ISREG(about.st_mode));
        if (exists) {
            contains(other, "precious");
            assert_int_equal(unlink(other), 0);
        }
        assert_int_not_equal(access(other, F_OK), 0);
        assert_int_equal(unlink(place.path), 0);
    }
    place_remove(&place);
}

static void modes_are_kept(void **state)
{
    static const mode_t modes[] = {0600, 0640, 0666, 0444, 0755};
    struct place place = place_make();
    const mode_t before = umask(027);

    (void)state;
    file_make(place.path, "new");
    assert_int_equal(mode_of(place.path), 0640);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(chmod(place.path, modes[i]), 0);
        file_make(place.path, "again");
        assert_int_equal(mode_of(place.path), modes[i]);
    }
    assert_int_equal(chmod(place.path, 04755), 0);
    file_make(place.path, "no right to act as its owner");
    assert_int_equal(mode_of(place.path), 0755);
    (void)umask(before);
    place_remove(&place);
}

/* A file that somebody else lays there does not open the new one to all. */
static void a_foreign_mode_takes_away_only(void **state)
{
    struct place place = place_make();
    const mode_t before = umask(022);

    (void)state;
    file_make(place.path, "theirs");
    if (geteuid() != 0 || chown(place.path, 65534, 65534) != 0) {
        (void)umask(before);
        place_remove(&place);
        (void)printf("skip: only root can give a file away\n");
        skip();
    }
    assert_int_equal(chmod(place.path, 0666), 0);
    file_make(place.path, "mine");
    assert_int_equal(mode_of(place.path), 0644);
    assert_int_equal(chown(place.path, 65534, 65534), 0);
    assert_int_equal(chmod(place.path, 0600), 0);
    file_make(place.path, "mine");
    assert_int_equal(mode_of(place.path), 0600);
    (void)umask(before);
    place_remove(&place);
}

enum {
    SAVES = 200
};

static void *save_often(void *path)
{
    size_t failed = 0;

    for (int i = 0; i < SAVES; i++) {
        struct tarn_file *file;

        failed +=
            tarn_file_create(path, &file, NULL) || tarn_file_finish(file, TARN_OK, NULL) != TARN_OK;
    }
    return failed ? path : NULL;
}

static void threads_write_one_path(void **state)
{
    struct place place = place_make();
    pthread_t threads[2];
    void *failed;

    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, save_often, place.path), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    contains(place.path, "");
    place_remove(&place);
}

static void a_full_disk_leaves_the_old_file(void **state)
{
    const struct rlimit small = {4, RLIM_INFINITY};
    struct place place = place_make();
    struct rlimit before;
    struct tarn_error error;
    struct tarn_file *file;

    (void)state;
    file_make(place.path, "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, SIG_IGN); /* else the write would end the program */
    assert_int_equal(tarn_file_create(place.path, &file, &error), TARN_OK);
    const struct tarn_writer writer = tarn_file_writer(file);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const enum tarn_status status = writer.write(writer.context, "too long", 8);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    errno = 0; /* what happens in between does not change the reason */
    assert_int_equal(tarn_file_finish(file, status, &error), TARN_ERR_IO);
    (void)signal(SIGXFSZ, SIG_DFL);
    assert_non_null(strstr(error.text, "File too large"));
    contains(place.path, "old");
    place_remove(&place);
}

static void what_cannot_be_begun(void **state)
{
    struct place place = place_make();
    struct tarn_file *file = (struct tarn_file *)&place;
    struct tarn_error error;
    static char long_path[5000];

    (void)state;
    assert_int_equal(tarn_file_create(place.folder.path, &file, &error), TARN_ERR_IO);
    assert_non_null(strstr(error.text, "Is a directory"));
    (void)snprintf(long_path, sizeof long_path, "%s/none/x", place.folder.path);
    assert_int_equal(tarn_file_create(long_path, &file, &error), TARN_ERR_IO);
    assert_null(file);
    memset(long_path, 'a', sizeof long_path - 1);
    assert_int_equal(tarn_file_create(long_path, &file, &error), TARN_ERR_INVALID_ARGUMENT);
    assert_int_equal(tarn_file_create("", &file, &error), TARN_ERR_INVALID_ARGUMENT);
    tarn_host_fail_nth(1);
    assert_int_equal(tarn_file_create(place.path, &file, &error), TARN_ERR_HOST_MEMORY);
    tarn_host_fail_nth(0);
    assert_null(file);
    place_remove(&place);
}

/* A file that is written while a call fails; what comes of it. */
static enum tarn_status write_with(const char *path, const char *call, int skip, int count,
                                   int reason)
{
    struct tarn_error error;
    struct tarn_file *file;

    fail_calls(call, skip, count, reason);
    enum tarn_status status = tarn_file_create(path, &file, &error);

    if (status == TARN_OK) {
        const struct tarn_writer writer = tarn_file_writer(file);

        status = writer.write(writer.context, "new", 3);
        status = tarn_file_finish(file, status, &error);
    }
    assert_true(fail_none());
    if (status) {
        assert_non_null(strstr(error.text, "cannot write "));
    }
    return status;
}

static void a_failing_call_leaves_the_old_file(void **state)
{
    struct place place = place_make();

    (void)state;
    file_make(place.path, "old");
    assert_int_equal(write_with(place.path, "fsync", 0, 1, EIO), TARN_ERR_IO);
    contains(place.path, "old");
    assert_int_equal(write_with(place.path, "write", 0, 1, ENOSPC), TARN_ERR_IO);
    contains(place.path, "old");
    assert_int_equal(write_with(place.path, "open", 0, refuses_unnamed ? 1 : 2, EACCES),
                     TARN_ERR_IO);
    contains(place.path, "old");
    assert_int_equal(files_in(&place), 1);
    place_remove(&place);
}

static void some_failures_change_nothing(void **state)
{
    static const struct {
        const char *call;
        int count, error;
    } rows[] = {
        {"fsync", 1, EINVAL},  /* a file system without that call */
        {"fsync", 1, ENOTSUP}, /* also as that */
        {"write", 3, EINTR},   /* again */
        {"write", 1, 0},       /* nothing was written, and no reason given */
        {"access", 1, ENOENT}, /* /proc is not mounted */
        {"open", 1, EEXIST},   /* the first draft */
    };
    struct place place = place_make();

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (refuses_unnamed && strcmp(rows[i].call, "access") == 0) {
            continue;
        }
        file_make(place.path, "old");
        assert_int_equal(write_with(place.path, rows[i].call, 0, rows[i].count, rows[i].error),
                         TARN_OK);
        contains(place.path, "new");
        assert_int_equal(files_in(&place), 1);
    }
    place_remove(&place);
}

/* Names that are taken, again and again: somebody plants them. */
static void drafts_give_up_some_time(void **state)
{
    struct place place = place_make();

    (void)state;
    file_make(place.path, "old");
    if (refuses_unnamed) {
        assert_int_equal(write_with(place.path, "open", 0, 100, EEXIST), TARN_ERR_IO);
    } else {
        assert_int_equal(write_with(place.path, "linkat", 0, 101, EEXIST), TARN_ERR_IO);
    }
    contains(place.path, "old");
    assert_int_equal(files_in(&place), 1);
    place_remove(&place);
}

/* In a group of which this user is no member: what its members may do, others may not. */
static void a_group_that_cannot_be_given_has_no_rights(void **state)
{
    struct place place = place_make();

    (void)state;
    file_make(place.path, "old");
    assert_int_equal(chmod(place.path, 0664), 0);
    assert_int_equal(write_with(place.path, "fchown", 0, 1, EPERM), TARN_OK);
    contains(place.path, "new");
    assert_int_equal(mode_of(place.path), 0604);
    place_remove(&place);
}

static void a_device_that_became_a_file_is_not_written(void **state)
{
    (void)state;
    assert_int_equal(write_with("/dev/null", "fstat", 0, 1, EIO), TARN_ERR_IO);
    assert_int_equal(write_with("/dev/null", "open", 0, 1, EACCES), TARN_ERR_IO);
}

static void a_reason_may_have_no_text(void **state)
{
    struct tarn_error error;
    struct tarn_file *file;

    (void)state;
    fail_calls("__xpg_strerror_r", 0, 1, 0);
    assert_int_equal(tarn_file_create("/no/such/folder/x", &file, &error), TARN_ERR_IO);
    if (fail_none()) { /* the C library has it under that name */
        assert_string_equal(error.text, "cannot write /no/such/folder/x: error 2");
    }
}

/* A pipe or a device gets what is written, whatever its name. */
static void a_device_is_not_compressed(void **state)
{
    struct place place = place_make();
    struct tarn_file *file;

    (void)state;
    (void)snprintf(place.path, sizeof place.path, "%s/null.gz", place.folder.path);
    assert_int_equal(symlink("/dev/null", place.path), 0);
    assert_int_equal(tarn_file_create(place.path, &file, NULL), TARN_OK);
    put(file, "as it is");
    assert_int_equal(tarn_file_finish(file, TARN_OK, NULL), TARN_OK);
    place_remove(&place);
}

/* What is compressed is written when it ends, and memory and the disk may be missing then. */
static void compression_may_fail_in_the_end(void **state)
{
    struct place place = place_make();
    struct tarn_error error;
    struct tarn_file *file;

    (void)state;
    (void)snprintf(place.path, sizeof place.path, "%s/report.zst", place.folder.path);
    assert_int_equal(tarn_file_create(place.path, &file, &error), TARN_OK);
    put(file, "packed");
    fail_calls("ZSTD_compressStream2", 0, 1, ENOMEM);
    assert_int_equal(tarn_file_finish(file, TARN_OK, &error), TARN_ERR_HOST_MEMORY);
    assert_true(fail_none());
    assert_int_equal(files_in(&place), 0);
    assert_int_equal(tarn_file_create(place.path, &file, &error), TARN_OK);
    put(file, "packed");
    fail_calls("write", 0, 1, ENOSPC);
    assert_int_equal(tarn_file_finish(file, TARN_OK, &error), TARN_ERR_IO);
    assert_true(fail_none());
    assert_non_null(strstr(error.text, "No space left"));
    assert_int_equal(files_in(&place), 0);
    assert_int_equal(write_with(place.path, "close", 0, 1, EIO), TARN_ERR_IO);
    assert_int_equal(tarn_file_create(place.path, &file, &error), TARN_OK);
    fail_calls("close", 0, 1, EIO); /* the first failure is the one to tell */
    errno = EDQUOT;                 /* of a caller who could not write elsewhere */
    assert_int_equal(tarn_file_finish(file, TARN_ERR_IO, &error), TARN_ERR_IO);
    assert_true(fail_none());
    assert_non_null(strstr(error.text, "quota"));
    assert_int_equal(files_in(&place), 0);
    place_remove(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_appears_in_the_end),
        cmocka_unit_test(a_failed_report_leaves_none),
        cmocka_unit_test(devices_and_pipes_are_written_as_they_are),
        cmocka_unit_test(a_draft_has_no_name),
        cmocka_unit_test(the_longest_name_has_a_draft),
        cmocka_unit_test(links_are_replaced_and_not_followed),
        cmocka_unit_test(modes_are_kept),
        cmocka_unit_test(a_foreign_mode_takes_away_only),
        cmocka_unit_test(threads_write_one_path),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(what_cannot_be_begun),
        cmocka_unit_test(a_failing_call_leaves_the_old_file),
        cmocka_unit_test(some_failures_change_nothing),
        cmocka_unit_test(drafts_give_up_some_time),
        cmocka_unit_test(a_group_that_cannot_be_given_has_no_rights),
        cmocka_unit_test(a_device_that_became_a_file_is_not_written),
        cmocka_unit_test(a_reason_may_have_no_text),
        cmocka_unit_test(a_device_is_not_compressed),
        cmocka_unit_test(compression_may_fail_in_the_end),
    };
    const struct CMUnitTest named[] = {
        cmocka_unit_test(it_appears_in_the_end),
        cmocka_unit_test(a_failed_report_leaves_none),
        cmocka_unit_test(drafts_have_names_of_their_own),
        cmocka_unit_test(the_longest_name_has_a_draft),
        cmocka_unit_test(links_are_replaced_and_not_followed),
        cmocka_unit_test(modes_are_kept),
        cmocka_unit_test(a_foreign_mode_takes_away_only),
        cmocka_unit_test(threads_write_one_path),
        cmocka_unit_test(a_full_disk_leaves_the_old_file),
        cmocka_unit_test(what_cannot_be_begun),
        cmocka_unit_test(a_failing_call_leaves_the_old_file),
        cmocka_unit_test(some_failures_change_nothing),
        cmocka_unit_test(drafts_give_up_some_time),
        cmocka_unit_test(a_group_that_cannot_be_given_has_no_rights),
        cmocka_unit_test(a_device_that_became_a_file_is_not_written),
        cmocka_unit_test(a_reason_may_have_no_text),
        cmocka_unit_test(a_device_is_not_compressed),
        cmocka_unit_test(compression_may_fail_in_the_end),
    };
    const int failed = cmocka_run_group_tests_name("unnamed drafts", tests, NULL, NULL);

    refuses_unnamed = true;
    return failed + cmocka_run_group_tests_name("drafts with names", named, NULL, NULL);
}
