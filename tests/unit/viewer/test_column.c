/* SPDX-License-Identifier: MIT */
/* Columns, and the sections that they become. */
#include "support/collect.h"

#include "tarn/host.h"
#include "viewer/section.h"

#include <zlib.h>

static void numbers_take_as_few_bytes_as_they_need(void **state)
{
    static const uint8_t expected[] = {0,    0x7f, 0x80, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                       0xff, 0xff, 0xff, 1, 0,    2,    1,    0xff, 1};
    struct tn_column column;

    (void)state;
    tn_column_init(&column);
    tn_column_put_varint(&column, 0);
    tn_column_put_varint(&column, 127);
    tn_column_put_varint(&column, 128);
    tn_column_put_varint(&column, UINT64_MAX);
    tn_column_put_step(&column, 7, 7);
    tn_column_put_step(&column, 7, 8);
    tn_column_put_step(&column, 7, 6);
    tn_column_put_step(&column, 128, 0);
    assert_int_equal(column.bytes.count, sizeof expected);
    assert_memory_equal(column.bytes.items, expected, sizeof expected);
    tn_column_fini(&column);
}

/* After the first missing byte of host memory nothing is added any more. */
static void it_remembers_missing_memory(void **state)
{
    struct tn_column column;
    const struct tarn_writer writer = tn_column_writer(&column);

    (void)state;
    tn_column_init(&column);
    tarn_host_fail_nth(1);
    tn_column_put_byte(&column, 1);
    tarn_host_fail_nth(0);
    assert_true(column.failed);
    tn_column_put_varint(&column, 5);
    tn_column_put(&column, "abc", 3);
    assert_int_equal(writer.write(writer.context, "x", 1), TARN_ERR_HOST_MEMORY);
    assert_int_equal(column.bytes.count, 0);
    tn_column_fini(&column);
    assert_int_equal(tarn_host_usage().live_bytes, 0);
}

static int letter_value(char letter)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = strchr(letters, letter);

    assert_non_null(at);
    return (int)(at - letters);
}

/* Undoes base64; returns the number of bytes. */
static size_t base64_undo(const char *text, size_t length, uint8_t *bytes)
{
    size_t used = 0;
    uint32_t bits = 0;
    int count = 0;

    for (size_t i = 0; i < length && text[i] != '='; i++) {
        bits = bits << 6 | (uint32_t)letter_value(text[i]);
        count += 6;
        if (count >= 8) {
            count -= 8;
            bytes[used++] = (uint8_t)(bits >> count);
        }
    }
    return used;
}

/* Whatever its size, what comes out of a section is what went in. */
static void check_section(size_t size)
{
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_column column;
    struct tn_text_out out;
    uint8_t *packed = malloc(size * 2 + 4096);
    uint8_t *bytes = malloc(size + 1);
    uLongf unpacked = (uLongf)size + 1;
    uint32_t seed = 1;

    tn_column_init(&column);
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        tn_column_put_byte(&column, (uint8_t)(i % 7 == 0 ? seed >> 24 : 3));
    }
    tn_text_init(&out, &writer);
    assert_true(tn_section_put(&out, "test", &column));
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    const char *start = strchr(collect.text, '>') + 1;
    const char *end = strstr(start, "</script>");

    assert_non_null(strstr(collect.text, "data-name=\"test\""));
    const size_t count = base64_undo(start, (size_t)(end - start), packed);

    assert_int_equal(uncompress(bytes, &unpacked, packed, (uLong)count), Z_OK);
    assert_int_equal(unpacked, size);
    assert_true(size == 0 || memcmp(bytes, column.bytes.items, size) == 0);
    tn_column_fini(&column);
    free(collect.text);
    free(packed);
    free(bytes);
}

static void sections_hold_what_they_got(void **state)
{
    static const size_t sizes[] = {0, 1, 2, 3, 1000, 3072, 20000, 1000000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_section(sizes[i]);
    }
}

static void sections_need_host_memory(void **state)
{
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_column column;
    struct tn_text_out out;
    bool done = false;
    uint64_t n = 0;

    (void)state;
    tn_column_init(&column);
    tn_column_put_varint(&column, 300);
    while (!done) {
        tn_text_init(&out, &writer);
        tarn_host_fail_nth(++n);
        done = tn_section_put(&out, "test", &column);
        tarn_host_fail_nth(0);
        assert_int_equal(tn_text_finish(&out), TARN_OK);
    }
    assert_in_range(n, 2, 20);
    tn_column_fini(&column);
    assert_int_equal(tarn_host_usage().live_bytes, 0);
    free(collect.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_take_as_few_bytes_as_they_need),
        cmocka_unit_test(it_remembers_missing_memory),
        cmocka_unit_test(sections_hold_what_they_got),
        cmocka_unit_test(sections_need_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
