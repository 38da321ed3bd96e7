/* SPDX-License-Identifier: MIT */
/* Flame graphs of a live allocator, in a file. */
#include "support/test.h"

#include "support/collect.h"
#include "support/rig.h"
#include "support/temp.h"
#include "tarn/capture.h"
#include "tarn/report.h"

#include <stdio.h>
#include <unistd.h>

typedef enum tarn_status (*save)(const struct tarn_capture_source *sources, size_t count,
                                 const char *path, struct tarn_error *error);

static const struct {
    save save;
    enum tarn_flame_view view;
} saves[] = {{tarn_save_segment_usage, TARN_FLAME_SEGMENTS},
             {tarn_save_memory_usage, TARN_FLAME_MEMORY}};

static char *picture_of(const struct tarn_capture_source *source, enum tarn_flame_view view)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tarn_snapshot *snapshot = NULL;

    assert_int_equal(tarn_snapshot_capture(source, 1, NULL, &snapshot, NULL), TARN_OK);
    assert_int_equal(tarn_report_flame(snapshot, view, NULL, &writer, NULL), TARN_OK);
    tarn_snapshot_destroy(snapshot);
    return collect.text;
}

static char *file_read(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = calloc(1, 1 << 20);

    assert_non_null(file);
    assert_non_null(text);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    (void)fclose(file);
    return text;
}

static void fill(struct rig *rig)
{
    (void)rig_alloc(rig, 5 * MIB, 0);
    (void)rig_alloc(rig, 700, 0);
    rig_free(rig, rig_alloc(rig, 30 * MIB, 4));
}

static void the_file_is_the_report(void **state)
{
    const struct temp_folder folder = temp_folder_make();
    struct rig rig;
    char path[400];

    (void)state;
    rig_open(&rig, GIB, "");
    fill(&rig);
    const struct tarn_capture_source source = {rig.allocator, NULL};

    (void)snprintf(path, sizeof path, "%s/usage.svg", folder.path);
    for (size_t i = 0; i < sizeof saves / sizeof *saves; i++) {
        char *wanted = picture_of(&source, saves[i].view);

        if (saves[i].save(&source, 1, path, &rig.error)) {
            fail_msg("%s", rig.error.text);
        }
        char *got = file_read(path);

        assert_string_equal(got, wanted);
        assert_non_null(strstr(got, "<svg"));
        assert_non_null(strstr(got, "stream_4"));
        free(wanted);
        free(got);
        assert_int_equal(unlink(path), 0);
    }
    temp_folder_remove(&folder);
    rig_close(&rig);
}

static void a_path_that_cannot_be_is_named(void **state)
{
    struct rig rig;

    (void)state;
    rig_open(&rig, GIB, "");
    fill(&rig);
    const struct tarn_capture_source source = {rig.allocator, NULL};

    assert_int_equal(tarn_save_segment_usage(&source, 1, "/no/such/folder/x.svg", &rig.error),
                     TARN_ERR_IO);
    assert_non_null(strstr(rig.error.text, "/no/such/folder/x.svg"));
    assert_int_equal(tarn_save_memory_usage(&source, 0, "x.svg", &rig.error),
                     TARN_ERR_INVALID_ARGUMENT);
    rig_close(&rig);
}

static void failures_leave_no_file(void **state)
{
    const struct temp_folder folder = temp_folder_make();
    enum tarn_status st = TARN_ERR_HOST_MEMORY;
    uint64_t n = 0;
    struct rig rig;
    char path[400];

    (void)state;
    rig_open(&rig, GIB, "");
    fill(&rig);
    const struct tarn_capture_source source = {rig.allocator, NULL};

    (void)snprintf(path, sizeof path, "%s/usage.svg", folder.path);
    while (st != TARN_OK) {
        const uint64_t before = tarn_host_get_usage().live_bytes;

        tarn_host_fail_nth(++n);
        st = tarn_save_segment_usage(&source, 1, path, &rig.error);
        tarn_host_fail_nth(0);
        assert_true(st == TARN_OK || st == TARN_ERR_HOST_MEMORY);
        assert_int_equal(tarn_host_get_usage().live_bytes, before);
        assert_int_equal(access(path, F_OK), st == TARN_OK ? 0 : -1);
    }
    assert_true(n > 5);
    assert_int_equal(unlink(path), 0);
    temp_folder_remove(&folder);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_the_report),
        cmocka_unit_test(a_path_that_cannot_be_is_named),
        cmocka_unit_test(failures_leave_no_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
