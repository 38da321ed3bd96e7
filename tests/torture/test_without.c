/* SPDX-License-Identifier: MIT */
/* Without libraries that compress: files that need one are refused with its name, no others. */
#include "support/temp.h"
#include "support/test.h"

#include "tarn/host.h"
#include "tarn/snapshot.h"
#include "tarn/writer.h"

#include <stdio.h>
#include <string.h>

static void packed_files_are_refused(void **state)
{
    static const uint8_t zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0};
    static const uint8_t gzip[] = {0x1f, 0x8b, 8, 0, 0, 0, 0, 0};
    static const struct {
        const uint8_t *bytes;
        const char *says;
    } rows[] = {{gzip, "is compressed with gzip, and this tarn was not built with zlib"},
                {zstd, "is compressed with zstd, and this tarn was not built with libzstd"}};
    static const char plain[] = "{\"segments\":[]}";
    struct tarn_snapshot *snapshot = NULL;
    struct tarn_error error = {.text = ""};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tarn_snapshot_load_memory(rows[i].bytes, 8, NULL, &snapshot, &error),
                         TARN_ERR_NOT_SUPPORTED);
        assert_non_null(strstr(error.text, rows[i].says));
        assert_null(snapshot);
    }
    assert_int_equal(tarn_snapshot_load_memory(plain, sizeof plain - 1, NULL, &snapshot, &error),
                     TARN_OK);
    tarn_snapshot_destroy(snapshot);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

static void packed_files_are_not_written(void **state)
{
    static const char *const endings[] = {".gz", ".zst", ""};
    static const char *const libraries[] = {"zlib", "libzstd", ""};
    const struct temp_folder folder = temp_folder_make();

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        char path[300];
        struct tarn_file *file = NULL;
        struct tarn_error error = {.text = ""};

        (void)snprintf(path, sizeof path, "%s/x.json%s", folder.path, endings[i]);
        const enum tarn_status st = tarn_file_create(path, &file, &error);

        assert_int_equal(st, i < 2 ? TARN_ERR_NOT_SUPPORTED : TARN_OK);
        if (st) {
            assert_null(file);
            assert_non_null(strstr(error.text, "was not built with "));
            assert_non_null(strstr(error.text, libraries[i]));
        } else {
            assert_int_equal(tarn_file_finish(file, TARN_OK, &error), TARN_OK);
            assert_int_equal(unlink(path), 0);
        }
    }
    temp_folder_remove(&folder); /* nothing else is there */
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_files_are_refused),
        cmocka_unit_test(packed_files_are_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
