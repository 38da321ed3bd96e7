/* SPDX-License-Identifier: MIT */
#include "support/collect.h"

#include "base/json_text.h"
#include "base/text_out.h"

#include <wchar.h>

static void pieces_arrive_in_order(void **state)
{
    static char long_text[3 * TN_TEXT_BUFFER];
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    (void)state;
    memset(long_text, 'x', sizeof long_text - 1);
    tn_text_init(&out, &writer);
    tn_text_puts(&out, "a");
    tn_text_printf(&out, "%d", 12);
    tn_text_puts(&out, long_text);
    for (int i = 0; i < 2 * TN_TEXT_BUFFER; i++) {
        tn_text_putc(&out, 'y');
    }
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_int_equal(collect.size, 3 + sizeof long_text - 1 + (size_t)2 * TN_TEXT_BUFFER);
    assert_memory_equal(collect.text, "a12x", 4);
    assert_memory_equal(collect.text + collect.size - 2, "yy", 2);
    free(collect.text);
}

static void numbers_are_decimal(void **state)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;
    struct tn_json_text json;

    (void)state;
    tn_text_init(&out, &writer);
    tn_text_put_number(&out, 0);
    tn_text_putc(&out, ' ');
    tn_text_put_number(&out, UINT64_MAX);
    tn_json_init(&json, &out, TN_JSON_COMPACT);
    tn_json_open_array(&json, NULL);
    tn_json_signed(&json, NULL, INT64_MIN);
    tn_json_signed(&json, NULL, -10);
    tn_json_signed(&json, NULL, INT64_MAX);
    tn_json_close(&json);
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_string_equal(collect.text, "0 18446744073709551615"
                                      "[-9223372036854775808,-10,9223372036854775807]");
    free(collect.text);
}

static void the_first_failure_sticks(void **state)
{
    struct test_collect collect = {.room = 5};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    (void)state;
    tn_text_init(&out, &writer);
    for (int i = 0; i < 3 * TN_TEXT_BUFFER; i++) {
        tn_text_puts(&out, "ab");
    }
    assert_int_equal(tn_text_finish(&out), TARN_ERR_IO);
    assert_int_equal(collect.size, 0);
    free(collect.text);
}

static void a_line_that_does_not_fit_is_an_error(void **state)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    (void)state;
    tn_text_init(&out, &writer);
    tn_text_printf(&out, "%*d", TN_TEXT_BUFFER, 1);
    assert_int_equal(tn_text_finish(&out), TARN_ERR_INTERNAL);
    free(collect.text);
}

/* The first failure stays, and what cannot be formatted is one. */
static void what_cannot_be_formatted_is_an_error(void **state)
{
    static const wchar_t none[] = {0xd800, 0}; /* is no character in any locale */
    struct test_collect collect = {.room = 1};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    (void)state;
    tn_text_init(&out, &writer);
    tn_text_printf(&out, "%ls", none);
    assert_int_equal(tn_text_finish(&out), TARN_ERR_INTERNAL);
    assert_int_equal(collect.size, 0);
    tn_text_init(&out, &writer);
    tn_text_puts(&out, "long");
    const enum tarn_status failed = tn_text_finish(&out);

    assert_true(failed != TARN_OK && failed != TARN_ERR_INTERNAL);
    tn_text_printf(&out, "%ls", none);
    assert_int_equal(tn_text_finish(&out), failed);
    free(collect.text);
}

static void columns_of_sizes_stay_aligned(void **state)
{
    static const char *const tables[] = {
        [TARN_UNITS_IEC] = "    1.50 KiB         0 B  x",
        [TARN_UNITS_SI] = "     1.54 kB         0 B  x",
        [TARN_UNITS_BYTES] = "             1536                0  x",
    };

    (void)state;
    for (int units = TARN_UNITS_IEC; units <= TARN_UNITS_BYTES; units++) {
        struct test_collect collect = {0};
        const struct tarn_writer writer = {test_collect_write, &collect};
        struct tn_text_out out;

        tn_text_init(&out, &writer);
        out.units = (enum tarn_units)units;
        tn_text_put_size(&out, 1536);
        tn_text_put_size(&out, 0);
        tn_text_puts(&out, "  x");
        assert_int_equal(tn_text_finish(&out), TARN_OK);
        assert_int_equal(collect.size, strlen(tables[units]));
        assert_memory_equal(collect.text, tables[units], collect.size);
        free(collect.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_formatted_is_an_error),
        cmocka_unit_test(columns_of_sizes_stay_aligned),
        cmocka_unit_test(pieces_arrive_in_order),
        cmocka_unit_test(numbers_are_decimal),
        cmocka_unit_test(the_first_failure_sticks),
        cmocka_unit_test(a_line_that_does_not_fit_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
