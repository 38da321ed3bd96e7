/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "support/temp.h"
#include "tarn/host.h"
#include "tarn/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder of its own, and a path in it. */
struct place {
    struct temp_folder folder;
    char path[300];
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
    assert_int_equal(tarn_host_usage().live_bytes, 0);
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

static void what_cannot_be_begun(void **state)
{
    struct place place = place_make();
    struct tarn_file *file = (struct tarn_file *)&place;
    struct tarn_error error;
    static char long_path[5000];

    (void)state;
    assert_int_equal(tarn_file_create(place.folder.path, &file, &error), TARN_OK);
    assert_int_equal(tarn_file_finish(file, TARN_OK, &error), TARN_ERR_IO);
    assert_non_null(strstr(error.text, "cannot replace"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_appears_in_the_end),
        cmocka_unit_test(a_failed_report_leaves_none),
        cmocka_unit_test(devices_and_pipes_are_written_as_they_are),
        cmocka_unit_test(what_cannot_be_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
