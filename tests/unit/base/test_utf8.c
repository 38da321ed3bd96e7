/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "base/utf8.h"

#include <string.h>

static bool valid(const char *text)
{
    return tn_utf8_is_valid(text, strlen(text));
}

static void sequences_of_every_length(void **state)
{
    (void)state;
    assert_true(valid(""));
    assert_true(valid("plain ascii of more than eight bytes"));
    assert_true(valid("\xc2\x80\xdf\xbf"));
    assert_true(valid("12345678\xe0\xa0\x80\xef\xbf\xbf"));
    assert_true(valid("\xf0\x90\x80\x80 and after \xf4\x8f\xbf\xbf"));
    assert_true(valid("\xed\xa0\x80")); /* a lone surrogate, as Python pickles it */
}

static void what_is_not_utf8(void **state)
{
    static const char *const cases[] = {
        "\x80",
        "\xbf",
        "\xc0\x80",
        "\xc1\xbf",
        "\xc2",
        "\xc2 ",
        "\xe0\x9f\xbf",
        "\xe1\x80",
        "\xe1\x80 ",
        "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff",
        "12345678\xff",
        "123456789abc\xc2",
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_false(valid(cases[i]));
    }
}

static void what_hides_is_not_printable(void **state)
{
    static const struct {
        uint32_t code;
        bool printable;
    } rows[] = {
        {0, false},          {0x1f, false},     {' ', true},
        {'~', true},         {0x7f, false},     {0xa0, false},
        {0xa1, true},        {0x202e, false},   {0xd800, false},
        {0xf900, true},      {0xe0080, true},   {0xeffff, true},
        {0xf0000, false},    {0x10ffff, false}, {0x110000, false},
        {UINT32_MAX, false}, /* no characters */
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(tn_utf8_is_printable(rows[i].code), rows[i].printable);
    }
}

static void cuts_no_character(void **state)
{
    (void)state;
    assert_int_equal(tn_utf8_cut("", 5), 0);
    assert_int_equal(tn_utf8_cut("abc", 5), 3);
    assert_int_equal(tn_utf8_cut("abc", 2), 2);
    for (size_t most = 1; most < 5; most++) {
        assert_int_equal(tn_utf8_cut("a\xf0\x9f\x94\xa5z", most), 1);
    }
    assert_int_equal(tn_utf8_cut("a\xf0\x9f\x94\xa5z", 5), 5);
    assert_int_equal(tn_utf8_cut("\xc3\xa4", 1), 0);
    assert_int_equal(tn_utf8_cut("\xe4\xe4\xe4", 2), 2); /* no UTF-8 */
    assert_int_equal(tn_utf8_cut("\x80\x80\x80\x80\x80", 4), 4);
    assert_int_equal(tn_utf8_fit("\xc3\xa4", 1, 1), 1); /* the text ends there */
}

static void repairs_byte_by_byte(void **state)
{
    static const char wrong[] = "a\x80\xc3(\xc3\xa4\xff";
    static const char right[] = "a\xed\xb2\x80\xed\xb3\x83(\xc3\xa4\xed\xb3\xbf";
    char copy[3 * sizeof wrong];
    const size_t size = tn_utf8_repair(wrong, sizeof wrong - 1, copy);

    (void)state;
    assert_int_equal(size, sizeof right - 1);
    assert_memory_equal(copy, right, size);
    assert_true(tn_utf8_is_valid(copy, size));
    assert_int_equal(tn_utf8_repair("", 0, copy), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequences_of_every_length),   cmocka_unit_test(what_is_not_utf8),
        cmocka_unit_test(what_hides_is_not_printable), cmocka_unit_test(cuts_no_character),
        cmocka_unit_test(repairs_byte_by_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
