/* SPDX-License-Identifier: MIT */
/*
 * A file system that loses what was not stored. The calls of a file that is being written are
 * followed: bytes are safe once the file was stored, names once the directory was. After each call
 * the power may fail; then any first part of the changes of names that were not stored has
 * happened, and of each file there is what was stored. At the path must be the whole old file or
 * the whole new one, and once the file is finished the new one.
 */
#define _GNU_SOURCE /* O_TMPFILE, syscall */
#include "support/test.h"

#include "support/temp.h"
#include "tarn/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FILES = 4,
    CHANGES = 8,
    PATH_BYTES = 600,
    NONE = -1
};

struct disk_file {
    int descriptor;
    size_t size;
    size_t stored;
};

/* `to` names the file from then on, and `from`, if there is one, does not. */
struct change {
    int file;
    char from[PATH_BYTES];
    char to[PATH_BYTES];
};

static struct {
    bool is_followed;
    bool refuses_unnamed;
    bool refuses_to_store;
    int folder_opens;  /* errno with which the directory cannot be opened, or 0 */
    int folder_stores; /* and with which it cannot be stored */
    struct disk_file files[FILES];
    int file_count;
    struct change changes[CHANGES];
    int change_count;
    int changes_stored;
    char path[PATH_BYTES]; /* where the old file is and the new one comes */
    int old;               /* number of the old file, or NONE */
    unsigned cuts;
    bool is_finished;
} disk;

/* ---- after a power cut ---- */

/* Which file is at the path after the first `count` changes; NONE if there is none. */
static int file_at_path(int count)
{
    int file = disk.old;

    for (int i = 0; i < count; i++) {
        if (strcmp(disk.changes[i].to, disk.path) == 0) {
            file = disk.changes[i].file;
        } else if (strcmp(disk.changes[i].from, disk.path) == 0) {
            file = NONE;
        }
    }
    return file;
}

static void expect_whole(int file)
{
    if (file == disk.old) {
        assert_false(disk.is_finished);
    } else {
        assert_int_not_equal(file, NONE);
        assert_int_equal(disk.files[file].stored, disk.files[file].size);
        assert_true(disk.files[file].size > 0);
    }
}

static void the_power_fails(void)
{
    if (disk.is_followed) {
        for (int count = disk.changes_stored; count <= disk.change_count; count++) {
            expect_whole(file_at_path(count));
        }
        disk.cuts++;
    }
}

/* ---- the calls, in place of those of the C library ---- */

static int disk_file_of(int descriptor)
{
    for (int i = disk.file_count - 1; i >= 0; i--) {
        if (disk.files[i].descriptor == descriptor) {
            return i;
        }
    }
    return NONE;
}

static int disk_file_new(int descriptor)
{
    assert_true(disk.file_count < FILES);
    disk.files[disk.file_count] = (struct disk_file){.descriptor = descriptor};
    return disk.file_count++;
}

static void disk_change(int file, const char *from, const char *to)
{
    struct change *change = &disk.changes[disk.change_count++];

    assert_true(disk.change_count <= CHANGES);
    change->file = file;
    (void)snprintf(change->from, sizeof change->from, "%s", from);
    (void)snprintf(change->to, sizeof change->to, "%s", to);
}

/* The file that the name has now. */
static int disk_file_named(const char *path)
{
    for (int i = disk.change_count - 1; i >= 0; i--) {
        if (strcmp(disk.changes[i].to, path) == 0) {
            return disk.changes[i].file;
        }
    }
    return NONE;
}

int open(const char *path, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    const bool is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    const bool is_new = is_unnamed || flags & O_CREAT;
    const mode_t mode = is_new ? va_arg(arguments, mode_t) : 0;

    va_end(arguments);
    if (is_unnamed && disk.refuses_unnamed) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (!is_new && flags & O_DIRECTORY && disk.folder_opens) {
        errno = disk.folder_opens;
        return -1;
    }
    const int descriptor = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);

    if (disk.is_followed && is_new && descriptor >= 0) {
        const int file = disk_file_new(descriptor);

        if (!is_unnamed) {
            disk_change(file, "", path);
        }
        the_power_fails();
    }
    return descriptor;
}

ssize_t write(int descriptor, const void *bytes, size_t size)
{
    const ssize_t done = syscall(SYS_write, descriptor, bytes, size);
    const int file = disk.is_followed ? disk_file_of(descriptor) : NONE;

    if (file != NONE && done > 0) {
        disk.files[file].size += (size_t)done;
        the_power_fails();
    }
    return done;
}

int fsync(int descriptor)
{
    const int file = disk_file_of(descriptor);
    struct stat about;
    const bool is_folder = fstat(descriptor, &about) == 0 && S_ISDIR(about.st_mode);
    const int reason = disk.refuses_to_store ? EIO : is_folder ? disk.folder_stores : 0;

    if (reason) {
        errno = reason;
        return -1;
    }
    if (file != NONE) {
        disk.files[file].stored = disk.files[file].size;
    } else {
        disk.changes_stored = disk.change_count;
    }
    the_power_fails();
    return 0;
}

int close(int descriptor)
{
    const int file = disk_file_of(descriptor);

    if (file != NONE) {
        disk.files[file].descriptor = NONE;
    }
    the_power_fails();
    return (int)syscall(SYS_close, descriptor);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    const int done = (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);
    const char *number = strrchr(from, '/');

    assert_non_null(number); /* /proc/self/fd/NUMBER */
    if (disk.is_followed && done == 0) {
        disk_change(disk_file_of((int)strtol(number + 1, NULL, 10)), "", to);
        the_power_fails();
    }
    return done;
}

int rename(const char *from, const char *to)
{
    const int done = (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);

    if (disk.is_followed && done == 0) {
        disk_change(disk_file_named(from), from, to);
        the_power_fails();
    }
    return done;
}

/* ---- cases ---- */

static void put(struct tarn_file *file, const char *text)
{
    const struct tarn_writer writer = tarn_file_writer(file);

    assert_int_equal(writer.write(writer.context, text, strlen(text)), TARN_OK);
}

static void write_file(const char *path, const char *text)
{
    struct tarn_file *file;

    assert_int_equal(tarn_file_create(path, &file, NULL), TARN_OK);
    put(file, text);
    put(file, text);
    assert_int_equal(tarn_file_finish(file, TARN_OK, NULL), TARN_OK);
}

static void cut_power_everywhere(const char *name, bool replaces, bool refuses_unnamed)
{
    const struct temp_folder folder = temp_folder_make();

    memset(&disk, 0, sizeof disk);
    (void)snprintf(disk.path, sizeof disk.path, "%s/%s", folder.path, name);
    disk.old = NONE;
    if (replaces) {
        write_file(disk.path, "old");
        disk.old = disk_file_new(NONE);
    }
    disk.refuses_unnamed = refuses_unnamed;
    disk.is_followed = true;
    disk.changes_stored = 0;
    write_file(disk.path, "new");
    disk.is_finished = true;
    the_power_fails();
    disk.is_followed = false;
    assert_true(disk.cuts >= 6);
    (void)unlink(disk.path);
    temp_folder_remove(&folder);
}

static void a_new_file(void **state)
{
    (void)state;
    cut_power_everywhere("report", false, false);
}

static void a_replaced_file(void **state)
{
    (void)state;
    cut_power_everywhere("report", true, false);
}

static void a_new_file_by_a_named_draft(void **state)
{
    (void)state;
    cut_power_everywhere("report", false, true);
}

static void a_replaced_file_by_a_named_draft(void **state)
{
    (void)state;
    cut_power_everywhere("report", true, true);
}

static void a_compressed_file(void **state)
{
    (void)state;
    cut_power_everywhere("report.gz", false, false);
    cut_power_everywhere("report.gz", true, true);
}

static void a_disk_that_fails_leaves_the_old_file(void **state)
{
    const struct temp_folder folder = temp_folder_make();
    struct tarn_file *file;

    (void)state;
    memset(&disk, 0, sizeof disk);
    disk.old = NONE;
    (void)snprintf(disk.path, sizeof disk.path, "%s/report", folder.path);
    for (int i = 0; i < 2; i++) {
        disk.refuses_unnamed = i > 0;
        disk.refuses_to_store = true;
        assert_int_equal(tarn_file_create(disk.path, &file, NULL), TARN_OK);
        put(file, "new");
        assert_int_equal(tarn_file_finish(file, TARN_OK, NULL), TARN_ERR_IO);
        assert_int_not_equal(access(disk.path, F_OK), 0);
    }
    temp_folder_remove(&folder);
}

/* The file is whole and in its place, whatever becomes of the name: only a failure is said. */
static void a_directory_that_cannot_be_stored(void **state)
{
    const struct {
        int opens;
        int stores;
        enum tarn_status status;
    } cases[] = {
        {0, EIO, TARN_ERR_IO}, {0, ENOSPC, TARN_ERR_IO}, {EMFILE, 0, TARN_ERR_IO},
        {0, EINVAL, TARN_OK}, /* a file system that stores no directories */
        {EACCES, 0, TARN_OK}, /* one that may be written, not read */
    };
    const struct temp_folder folder = temp_folder_make();

    (void)state;
    memset(&disk, 0, sizeof disk);
    disk.old = NONE;
    (void)snprintf(disk.path, sizeof disk.path, "%s/report", folder.path);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        struct tarn_file *file;
        struct tarn_error error = {0};

        disk.refuses_unnamed = i % 2;
        disk.folder_opens = cases[i / 2].opens;
        disk.folder_stores = cases[i / 2].stores;
        assert_int_equal(tarn_file_create(disk.path, &file, NULL), TARN_OK);
        put(file, "new");
        assert_int_equal(tarn_file_finish(file, TARN_OK, &error), cases[i / 2].status);
        if (cases[i / 2].status) {
            assert_non_null(strstr(error.text, "report is complete, but a power cut may lose it"));
        }
        assert_int_equal(access(disk.path, F_OK), 0);
        assert_int_equal(unlink(disk.path), 0);
    }
    temp_folder_remove(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_file),
        cmocka_unit_test(a_replaced_file),
        cmocka_unit_test(a_new_file_by_a_named_draft),
        cmocka_unit_test(a_replaced_file_by_a_named_draft),
        cmocka_unit_test(a_compressed_file),
        cmocka_unit_test(a_disk_that_fails_leaves_the_old_file),
        cmocka_unit_test(a_directory_that_cannot_be_stored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
