/* SPDX-License-Identifier: MIT */
#include "support/collect.h"

#include "base/escaped.h"
#include "base/utf8.h"
#include "tarn/text.h"

/* U+202E, which turns what follows it around; not as a text, so that it does not do so here. */
static const char turn[] = {'\xe2', '\x80', '\xae', '\0'};

static void writes(const char *text, size_t length, enum tn_escape_format format,
                   const char *expected)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    tn_text_init(&out, &writer);
    tn_text_put_escaped(&out, text, length, format);
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_string_equal(collect.text, expected);
    free(collect.text);
}

static void shows(const char *text, enum tn_escape_format format, const char *expected)
{
    writes(text, strlen(text), format, expected);
}

static void python(const char *text, const char *expected)
{
    struct test_collect collect = {0};
    const struct tarn_writer writer = {test_collect_write, &collect};
    struct tn_text_out out;

    tn_text_init(&out, &writer);
    tn_text_put_python(&out, text, strlen(text));
    assert_int_equal(tn_text_finish(&out), TARN_OK);
    assert_string_equal(collect.text, expected);
    free(collect.text);
}

static void what_shows_stays(void **state)
{
    (void)state;
    shows("train_step:12 \\ 'a' <b> \xc3\xa9 \xf0\x9f\x94\xa5", TN_ESCAPED_PLAIN,
          "train_step:12 \\ 'a' <b> \xc3\xa9 \xf0\x9f\x94\xa5");
}

/* Wherever a byte is among others that need no escape, it is judged as it is alone. */
static void each_byte_is_judged_alone(void **state)
{
    static const enum tn_escape_format formats[] = {TN_ESCAPED_PLAIN,  TN_ESCAPED_LINES,
                                                    TN_ESCAPED_XML,    TN_ESCAPED_JSON,
                                                    TN_ESCAPED_PYTHON, TN_ESCAPED_PYTHON_DOUBLE};

    (void)state;
    for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
        for (int byte = 0; byte < 256; byte++) {
            const char alone = (char)byte;
            const bool is_plain = tn_escaped_plain(&alone, 1, formats[f]) == 1;

            for (size_t at = 0; at < 24; at++) {
                char text[] = "torch/nn/modules/conv.py";

                text[at] = alone;
                assert_int_equal(tn_escaped_plain(text, 24, formats[f]), is_plain ? 24 : at);
            }
        }
    }
}

static void what_hides_is_escaped(void **state)
{
    (void)state;
    shows("a\x1b[31mb\n\xc2\x85", TN_ESCAPED_PLAIN, "a\\x1b[31mb\\x0a\\x85");
    shows(turn, TN_ESCAPED_PLAIN, "\\u202e");
    shows("\xf3\xa0\x81\x81", TN_ESCAPED_PLAIN, "\\U000e0041");
    shows("\xed\xa0\x80", TN_ESCAPED_PLAIN, "\\ud800");
    writes("a\0b", 3, TN_ESCAPED_PLAIN, "a\\x00b");
}

static void bytes_that_are_no_characters(void **state)
{
    (void)state;
    shows("\xff\xc3", TN_ESCAPED_PLAIN, "\\xff\\xc3");
    shows("\xff", TN_ESCAPED_JSON, "\\ufffd");
    writes(turn, 2, TN_ESCAPED_PLAIN, "\\xe2\\x80");
}

static void markup_is_text(void **state)
{
    (void)state;
    shows("</script>&\"'\x01", TN_ESCAPED_XML, "&lt;/script&gt;&amp;&quot;&#39;\\x01");
}

static void json_strings(void **state)
{
    (void)state;
    shows("\"\\\n\x02", TN_ESCAPED_JSON, "\\\"\\\\\\n\\u0002");
    shows(turn, TN_ESCAPED_JSON, "\\u202e");
    shows("\xf3\xa0\x81\x81", TN_ESCAPED_JSON, "\\udb40\\udc41");
    shows("\xed\xa0\x80", TN_ESCAPED_JSON, "\\ufffd"); /* half of a pair is no character */
}

/* Expected texts are what Python 3 prints for repr of these strings. */
static void python_strings(void **state)
{
    (void)state;
    python("", "''");
    python("N/A", "'N/A'");
    python("it's", "\"it's\"");
    python("it's \"so\"", "'it\\'s \"so\"'");
    python("a\\b\n\r\t\x7f", "'a\\\\b\\n\\r\\t\\x7f'");
    python("\xc2\xa0\xe2\x80\xa8\xc3\xa9\xed\xb0\x80", "'\\xa0\\u2028\xc3\xa9\\udc00'");
}

/* A character by itself, whether or not it needs an escape. */
static void single_pieces_are_escaped_too(void **state)
{
    char copy[64] = "x";

    (void)state;
    assert_int_equal(tn_escaped_copy("'a'\t", 4, TN_ESCAPED_PYTHON_DOUBLE, copy, sizeof copy), 4);
    assert_string_equal(copy, "'a'\\t");
    assert_int_equal(tn_escaped_copy("'a'\t", 4, TN_ESCAPED_PYTHON, copy, sizeof copy), 4);
    assert_string_equal(copy, "\\'a\\'\\t");
    assert_int_equal(tarn_text_escape("a", 1, TARN_TEXT_JSON, NULL, 0), 0);
    assert_int_equal(tarn_text_escape("a", 1, TARN_TEXT_JSON, copy, 1), 0);
    assert_string_equal(copy, "");
}

static void codes_are_decoded(void **state)
{
    uint32_t code = 0;

    (void)state;
    assert_int_equal(tn_utf8_decode("A", 1, &code), 1);
    assert_int_equal(code, 'A');
    assert_int_equal(tn_utf8_decode("\xf4\x8f\xbf\xbf", 4, &code), 4);
    assert_int_equal(code, 0x10ffff);
    assert_int_equal(tn_utf8_decode("\xe0\x9f\xbf", 3, &code), 0);
    assert_int_equal(tn_utf8_decode("\xe2\x82", 2, &code), 0);
    assert_true(tn_utf8_is_printable(' '));
    assert_true(tn_utf8_is_printable(0x4e00));
    assert_false(tn_utf8_is_printable(0x200b));
    assert_false(tn_utf8_is_printable(0x10ffff));
}

static void pieces_hold_whole_characters(void **state)
{
    const char text[] = "abcdefghijk\x1b[0m\xe2\x80\xa8\xc3\xa4";
    char piece[TARN_TEXT_ESCAPED_MIN] = "?";

    (void)state;
    assert_int_equal(tarn_text_escape(text, strlen(text), TARN_TEXT_PLAIN, piece, sizeof piece),
                     12);
    assert_string_equal(piece, "abcdefghijk\\x1b");
    assert_int_equal(tarn_text_escape(text + 12, 8, TARN_TEXT_PLAIN, piece, sizeof piece), 8);
    assert_string_equal(piece, "[0m\\u2028\xc3\xa4");
    assert_int_equal(tarn_text_escape("\"\xff", 2, TARN_TEXT_JSON, piece, sizeof piece), 2);
    assert_string_equal(piece, "\\\"\\ufffd");
    assert_int_equal(tarn_text_escape("a", 1, TARN_TEXT_PLAIN, piece, 15), 0); /* too small */
    assert_string_equal(piece, "");
    assert_int_equal(tarn_text_fit("\xc3\xa4", 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_shows_stays),      cmocka_unit_test(each_byte_is_judged_alone),
        cmocka_unit_test(what_hides_is_escaped), cmocka_unit_test(bytes_that_are_no_characters),
        cmocka_unit_test(markup_is_text),        cmocka_unit_test(json_strings),
        cmocka_unit_test(python_strings),        cmocka_unit_test(single_pieces_are_escaped_too),
        cmocka_unit_test(codes_are_decoded),     cmocka_unit_test(pieces_hold_whole_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
