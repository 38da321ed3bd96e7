/* SPDX-License-Identifier: MIT */
#include "support/file.h"
#include "support/test.h"

#include "base/size_text.h"

#include <string.h>

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

/* C++ format_size compares with "at most", so a full unit is written in the smaller one. */
static void messages_change_unit_above_1024(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 bytes"},
        {1, "1 bytes"},
        {512, "512 bytes"},
        {1023, "1023 bytes"},
        {1024, "1024 bytes"},
        {1025, "1.00 KiB"},
        {1536, "1.50 KiB"},
        {MIB - 1, "1024.00 KiB"},
        {MIB, "1024.00 KiB"},
        {MIB + 1, "1.00 MiB"},
        {2 * MIB, "2.00 MiB"},
        {20 * MIB, "20.00 MiB"},
        {GIB - 1, "1024.00 MiB"},
        {GIB, "1024.00 MiB"},
        {GIB + 1, "1.00 GiB"},
        {80 * GIB, "80.00 GiB"},
        {1024 * GIB, "1024.00 GiB"},
        {1025 * GIB, "1025.00 GiB"},
        {(uint64_t)800000000 * GIB, "800000000.00 GiB"},
        {UINT64_MAX, "17179869184.00 GiB"},
        {(uint64_t)79 * GIB + GIB / 100, "79.01 GiB"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(tn_size_text_message(rows[i].bytes).text, rows[i].text);
    }
}

/* `Bytes.__repr__` of _memory_viz.py divides while the amount is 1024 or more. */
static void tools_change_unit_at_1024(void **state)
{
    static const struct {
        double bytes;
        const char *text;
    } rows[] = {
        {0, "0.0B"},
        {1023, "1023.0B"},
        {1024, "1.0KiB"},
        {1536, "1.5KiB"},
        {1024.0 * 1024.0 - 1.0, "1024.0KiB"},
        {1024.0 * 1024.0, "1.0MiB"},
        {1024.0 * 1024.0 * 1024.0, "1.0GiB"},
        {-2048, "-2.0KiB"},
        {1e30, "827180.6YiB"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(tn_size_text_viz(TARN_UNITS_IEC, rows[i].bytes).text, rows[i].text);
    }
}

static void readers_choose_the_units(void **state)
{
    static const struct {
        enum tarn_units units;
        double bytes;
        const char *text;
    } rows[] = {
        {TARN_UNITS_IEC, 1536, "1.50 KiB"},
        {TARN_UNITS_IEC, -2048, "-2.00 KiB"},
        {TARN_UNITS_IEC, 1e30, "827180.61 YiB"},
        {TARN_UNITS_SI, 0, "0 B"},
        {TARN_UNITS_SI, 999, "999 B"},
        {TARN_UNITS_KIB, 512, "0.50 KiB"},
        {TARN_UNITS_MIB, 1610612736, "1536.00 MiB"},
        {TARN_UNITS_GIB, 1610612736, "1.50 GiB"},
        {TARN_UNITS_SI, 1000, "1.00 kB"},
        {TARN_UNITS_SI, -2500000, "-2.50 MB"},
        {TARN_UNITS_SI, 80e9, "80.00 GB"},
        {TARN_UNITS_BYTES, 0, "0"},
        {TARN_UNITS_BYTES, 1536, "1536"},
        {TARN_UNITS_BYTES, 85899345920, "85899345920"},
        {TARN_UNITS_BYTES, -1, "-1"},
        {TARN_UNITS_BYTES, 18446744073709551615.0, "18446744073709551616"}, /* as a double */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_string_equal(tn_size_text_in(rows[i].units, rows[i].bytes).text, rows[i].text);
    }
}

/* One function for the units that a reader may choose in either style. */
static void tools_have_the_units(void **state)
{
    (void)state;
    assert_string_equal(tn_size_text_viz(TARN_UNITS_SI, 2500000).text, "2.5MB");
    assert_string_equal(tn_size_text_viz(TARN_UNITS_BYTES, 1536).text, "1536");
}

/* The viewer's page is held against the same list. */
static void texts_are_those_of_the_list(void **state)
{
    const struct test_file list = test_file_read("sizes.txt");
    size_t lines = 0;

    (void)state;
    for (char *line = (char *)list.bytes; *line; lines++) {
        char text[TARN_SIZE_TEXT_MAX];
        char *end;
        const uint64_t bytes = strtoull(line, &end, 10);

        line = strchr(line, '\n') + 1;
        line[-1] = '\0';
        assert_string_equal(tarn_size_text(text, TARN_UNITS_IEC, (double)bytes), end + 1);
    }
    assert_true(lines > 20);
    free(list.bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_those_of_the_list),
        cmocka_unit_test(tools_have_the_units),
        cmocka_unit_test(readers_choose_the_units),
        cmocka_unit_test(messages_change_unit_above_1024),
        cmocka_unit_test(tools_change_unit_at_1024),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
