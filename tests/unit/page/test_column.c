/* SPDX-License-Identifier: MIT */
/* Columns, and the sections that they become. */
#include "support/collect.h"

#include "page/section.h"
#include "tarn/host.h"

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
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
}

/* Undoes base 128 as the page does; returns the number of bytes. Every byte of the text is one that
 * an HTML parser leaves as it is. */
static size_t base128_undo(const char *text, size_t length, uint8_t *bytes)
{
    static const uint8_t forbidden[] = {'\0', '\r', '<', 0x1a};
    size_t used = 0;
    uint32_t bits = 0;
    int count = 0;

    for (size_t i = 0; i < length; i++) {
        uint32_t code = (uint8_t)text[i];

        assert_null(memchr(forbidden, (int)code, sizeof forbidden));
        if (code < 0x80) {
            bits = bits << 7 | code;
            count += 7;
        } else {
            assert_true((code == 0xc2 || code == 0xc3) && i + 1 < length);
            assert_int_equal((uint8_t)text[i + 1] & 0xc0, 0x80);
            code = (code & 3) << 6 | ((uint8_t)text[++i] & 0x3f);
            bits = bits << 12 | (uint32_t)forbidden[(code - 0x80) >> 5] << 5 | (code & 31);
            count += 12;
        }
        for (; count >= 8; count -= 8) {
            bytes[used++] = (uint8_t)(bits >> (count - 8));
        }
    }
    return used;
}

/* Bytes as base 128 and back. */
static void check_base128(const uint8_t *bytes, size_t size)
{
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_base128 encoder;
    struct tn_text_out out;
    uint8_t *again = malloc(2 * size + 8);

    tn_text_init(&out, &writer);
    tn_base128_init(&encoder, &out);
    tn_base128_put(&encoder, bytes, size / 3); /* calls may be cut anywhere */
    tn_base128_put(&encoder, bytes + size / 3, size - size / 3);
    tn_base128_finish(&encoder);
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_int_equal(base128_undo(collect.text, strlen(collect.text), again), size);
    assert_memory_equal(again, bytes, size);
    free(again);
    free(collect.text);
}

/* All short texts, so that every value is met with every number of bits behind it; and long runs of
 * what is forbidden. */
static void base128_brings_bytes_back(void **state)
{
    uint8_t bytes[5000] = {0};

    (void)state;
    check_base128(bytes, 1);
    for (uint32_t i = 0; i < 1 << 16; i++) {
        bytes[0] = (uint8_t)i;
        bytes[1] = (uint8_t)(i >> 8);
        bytes[2] = (uint8_t)(i * 40503u >> 8);
        check_base128(bytes, 1 + i % 3);
    }
    for (unsigned value = 0; value < 256; value++) {
        memset(bytes, (int)value, sizeof bytes);
        check_base128(bytes, sizeof bytes - value % 8);
    }
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
    assert_true(tn_section_put(&(struct tn_section_out){&out, ""}, "test", &column));
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    const char *start = strchr(collect.text, '>') + 1;
    const char *end = strstr(start, "</script>");

    assert_non_null(strstr(collect.text, "data-name=\"test\""));
    const size_t count = base128_undo(start, (size_t)(end - start), packed);

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
    static const size_t sizes[] = {0, 1, 2, 3, 1000, 3072, 20000, 1000000, 1 << 20, 2500000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_section(sizes[i]);
    }
}

static uint8_t *unpacked_of(const char *text, size_t size)
{
    const char *start = strchr(text, '>') + 1;
    const char *end = strstr(start, "</script>");
    uint8_t *packed = malloc((size_t)(end - start) * 2);
    uint8_t *bytes = malloc(size + 1);
    uLongf unpacked = (uLongf)size + 1;
    const size_t count = base128_undo(start, (size_t)(end - start), packed);

    assert_int_equal(uncompress(bytes, &unpacked, packed, (uLong)count), Z_OK);
    assert_int_equal(unpacked, size);
    free(packed);
    return bytes;
}

/* Parts with and without repetitions in turn: they are packed in two ways, in one section. */
static void parts_make_one_section(void **state)
{
    enum {
        PART = 40000,
        PARTS = 5
    };
    struct test_collect collect = {.text = calloc(1, 1)};
    const struct tarn_writer writer = {test_collect_write, &collect};
    uint8_t *bytes = malloc((size_t)PART * PARTS);
    struct tn_section section;
    struct tn_text_out out;
    uint32_t seed = 1;

    (void)state;
    assert_non_null(bytes);
    tn_text_init(&out, &writer);
    assert_true(tn_section_begin(&section, &(struct tn_section_out){&out, ""}, "test",
                                 (size_t)PART * PARTS));
    for (size_t part = 0; part < PARTS; part++) {
        uint8_t *from = bytes + part * PART;

        for (size_t i = 0; i < PART; i++) {
            seed = seed * 1664525 + 1013904223;
            from[i] = part % 2 == 0 ? (uint8_t)(seed >> 28) : (uint8_t)(i % 100);
        }
        tn_section_add(&section, from, PART);
        tn_section_add(&section, from, 0);
        assert_int_equal(section.strategy, part % 2 == 0 ? Z_HUFFMAN_ONLY : Z_DEFAULT_STRATEGY);
    }
    assert_true(tn_section_end(&section));
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    uint8_t *again = unpacked_of(collect.text, (size_t)PART * PARTS);

    assert_memory_equal(again, bytes, (size_t)PART * PARTS);
    assert_in_range(strlen(collect.text), 3 * PART / 2, 3 * PART / 2 * 6 / 5);
    free(again);
    free(bytes);
    free(collect.text);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
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
    for (uint64_t i = 0; i < 5000; i++) { /* enough to be tried in two ways */
        tn_column_put_byte(&column, (uint8_t)(i * i >> 4));
    }
    while (!done) {
        tn_text_init(&out, &writer);
        tarn_host_fail_nth(++n);
        done = tn_section_put(&(struct tn_section_out){&out, ""}, "test", &column);
        tarn_host_fail_nth(0);
        assert_int_equal(tn_text_finish(&out), TARN_OK);
    }
    assert_in_range(n, 6, 30);
    for (uint64_t i = 1; i < n; i++) { /* what follows a part that failed is taken */
        struct tn_section section;

        tn_text_init(&out, &writer);
        tarn_host_fail_nth(i);
        if (tn_section_begin(&section, &(struct tn_section_out){&out, ""}, "test", 10000)) {
            tn_section_add(&section, column.bytes.items, column.bytes.count);
            tn_section_add(&section, column.bytes.items, column.bytes.count);
            assert_false(tn_section_end(&section));
        }
        tarn_host_fail_nth(0);
        assert_int_equal(tn_text_finish(&out), TARN_OK);
    }
    tn_column_fini(&column);
    assert_int_equal(tarn_host_get_usage().live_bytes, 0);
    free(collect.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_take_as_few_bytes_as_they_need),
        cmocka_unit_test(it_remembers_missing_memory),
        cmocka_unit_test(base128_brings_bytes_back),
        cmocka_unit_test(sections_hold_what_they_got),
        cmocka_unit_test(parts_make_one_section),
        cmocka_unit_test(sections_need_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
