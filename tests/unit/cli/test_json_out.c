/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "cli/json_out.h"
#include "tarn/base.h"

#include <stdlib.h>

/* Begins a document with an object as data in a memory file. */
static FILE *document_open(struct cli_json *json, char **text_out, size_t *size_out)
{
    FILE *file = open_memstream(text_out, size_out);

    assert_non_null(file);
    cli_json_begin(json, file, "test/1", false);
    return file;
}

static void expect_data(struct cli_json *json, FILE *file, char **text, const char *data)
{
    char expected[1000];

    cli_json_end(json);
    assert_int_equal(fclose(file), 0);
    (void)snprintf(expected, sizeof expected,
                   "{\n  \"schema\": \"test/1\",\n  \"tool\": {\n    \"name\": \"tarn\",\n"
                   "    \"version\": \"" TARN_VERSION_STRING "\"\n  },\n  \"data\": %s\n}\n",
                   data);
    assert_string_equal(*text, expected);
    free(*text);
}

static void levels_are_indented_and_separated(void **state)
{
    struct cli_json json;
    char *text;
    size_t size;
    FILE *file = document_open(&json, &text, &size);

    (void)state;
    cli_json_number(&json, "n", UINT64_MAX);
    cli_json_open_array(&json, "list");
    cli_json_bool(&json, NULL, true);
    cli_json_text(&json, NULL, NULL);
    cli_json_close(&json);
    cli_json_open_object(&json, "empty");
    cli_json_close(&json);
    cli_json_bool(&json, "no", false);
    expect_data(&json, file, &text,
                "{\n    \"n\": 18446744073709551615,\n    \"list\": [\n      true,\n      null\n"
                "    ],\n    \"empty\": {},\n    \"no\": false\n  }");
}

static void text_is_escaped(void **state)
{
    struct cli_json json;
    char *text;
    size_t size;
    FILE *file = document_open(&json, &text, &size);

    (void)state;
    cli_json_text(&json, "a\"b", "\\ / \b\f\n\r\t \x01 \x7f </script>");
    expect_data(&json, file, &text,
                "{\n    \"a\\\"b\": \"\\\\ / \\u0008\\u000c\\n\\u000d\\u0009 \\u0001 \\u007f "
                "</script>\"\n  }");
}

static void what_is_not_utf8_is_replaced(void **state)
{
    struct cli_json json;
    char *text;
    size_t size;
    FILE *file = document_open(&json, &text, &size);

    (void)state;
    cli_json_text(&json, "good", "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80");
    cli_json_text(&json, "overlong", "\xC0\x80");
    cli_json_text(&json, "surrogate", "\xED\xA0\x80");
    cli_json_text(&json, "cut", "\xE2\x82");
    cli_json_text(&json, "hidden", "\xC2\x9B\xE2\x80\xA8");
    expect_data(&json, file, &text,
                "{\n    \"good\": \"\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80\",\n"
                "    \"overlong\": \"\\ufffd\\ufffd\",\n    \"surrogate\": \"\\ufffd\",\n"
                "    \"cut\": \"\\ufffd\\ufffd\",\n    \"hidden\": \"\\u009b\\u2028\"\n  }");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_are_indented_and_separated),
        cmocka_unit_test(text_is_escaped),
        cmocka_unit_test(what_is_not_utf8_is_replaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
